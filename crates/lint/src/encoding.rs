//! Scripts that are not UTF-8: in the encoding that they declare, as Python reads them
//! (`# -*- coding: gbk -*-` in one of the first two lines), or in GBK, in which editors on Chinese
//! systems write.

use encoding_rs::GB18030;

/// The encoding of a file, in which it is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl Encoding {
    pub const UTF_8: Self = Self(encoding_rs::UTF_8);

    /// The bytes of a text; `None` if it has characters that the encoding lacks.
    pub fn encoded(self, text: &str) -> Option<Vec<u8>> {
        let (bytes, _, has_unknown) = self.0.encode(text);
        (!has_unknown).then(|| bytes.into_owned())
    }
}

/// The text of a file that is not UTF-8. Only encodings that give back the same bytes are considered, so
/// that fixing a file changes nothing but what is fixed.
pub fn decoded(contents: &[u8]) -> Option<(String, Encoding)> {
    declared(contents)
        .into_iter()
        .chain([GB18030])
        .find_map(|encoding| {
            let text = encoding.decode_without_bom_handling_and_without_replacement(contents)?;
            let encoding = Encoding(encoding);
            (!text.contains('\0') && encoding.encoded(&text).as_deref() == Some(contents))
                .then(|| (text.into_owned(), encoding))
        })
}

/// The encoding that a comment in one of the first two lines declares, as in PEP 263.
fn declared(contents: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    contents
        .split(|byte| *byte == b'\n')
        .take(2)
        .find_map(|line| {
            let line = line.trim_ascii_start();
            let comment = line.strip_prefix(b"#")?;
            let at = comment.windows(6).position(|word| word == b"coding")?;
            let rest = comment.get(at + 6..)?;
            let (b':' | b'=') = rest.first()? else {
                return None;
            };
            let name: Vec<u8> = rest[1..]
                .trim_ascii_start()
                .iter()
                .copied()
                .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
                .collect();
            encoding_rs::Encoding::for_label(&name)
                .or_else(|| encoding_rs::Encoding::for_label(python_name(&name)))
        })
}

/// Names that only Python has.
fn python_name(name: &[u8]) -> &[u8] {
    match name.to_ascii_lowercase().as_slice() {
        b"cp936" | b"ms936" | b"936" | b"gb18030_2000" => b"gbk",
        b"cp950" | b"950" => b"big5",
        b"cp932" | b"932" | b"mskanji" => b"shift_jis",
        b"latin-1" | b"latin_1" | b"iso8859_1" => b"latin1",
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a comment in an encoding.
    fn comment(label: &str, declaration: &str, text: &str) -> Vec<u8> {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).expect("a label");
        let source = format!("{declaration}# {text}\nx = 1\n");
        encoding.encode(&source).0.into_owned()
    }

    #[test]
    fn the_declared_encoding_is_read_and_gbk_without_one() {
        for (label, declaration, text) in [
            ("gbk", "# -*- coding: gbk -*-\n", "训练模型"),
            ("gbk", "#!/usr/bin/env python\n# coding=cp936\n", "训练模型"),
            ("gbk", "", "训练模型，学习率"),
            ("big5", "# vim: set fileencoding=big5 :\n", "訓練模型"),
            ("euc-kr", "# -*- coding: euc-kr -*-\n", "모델 훈련"),
            ("latin1", "# -*- coding: latin-1 -*-\n", "Größe"),
        ] {
            let bytes = comment(label, declaration, text);
            let (decoded, encoding) = decoded(&bytes).expect("text");
            assert!(decoded.contains(text), "{label}: {decoded}");
            assert_eq!(encoding.encoded(&decoded), Some(bytes), "{label}");
        }
    }

    #[test]
    fn bytes_without_a_meaning_are_no_text() {
        for bytes in [&b"\xff\xfe\x00"[..], b"\x7fELF\xff", b"# \xc4\xe3\xff\n"] {
            assert_eq!(decoded(bytes), None, "{bytes:?}");
        }
    }
}
