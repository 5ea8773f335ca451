//! Windows: RAM and page file together are what programs may use.

use super::{Family, Message, pattern, range};
use crate::kind::Kind;
use crate::window::Window;

pub const FAMILY: Family = Family {
    needles: &[
        "WinError 1455",
        "os error 1455",
        "paging file is too small",
        "页面文件太小",
    ],
    read,
};

pattern!(
    PAGE_FILE,
    r"\[?WinError1455\]?:?(?:[^\n]{0,60}?toosmallforthisoperationtocomplete|页面文件太小)?|pagingfileistoosmallforthisoperation(?:tocomplete)?|页面文件太小|\(oserror1455\)"
);

fn read(window: &Window) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for found in PAGE_FILE.printed(window.squeezed()) {
        let (start, end) = range(&found);
        // The number and the words are one message.
        match messages.last_mut() {
            Some(last) if start <= last.end + 80 => last.end = end,
            _ => messages.push(Message::new(Kind::PageFile, start, end)),
        }
    }
    messages
}
