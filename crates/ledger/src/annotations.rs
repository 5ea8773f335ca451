//! Which named range was open when something was allocated.

use ghostgpu_trace::{Annotation, AnnotationStage, NameId};

/// The innermost open range of the user's over time.
#[derive(Debug, Default)]
pub(crate) struct OpenRanges {
    /// From when on which range is the innermost, in the order of time.
    changes: Vec<(i64, NameId)>,
}

impl OpenRanges {
    /// From a snapshot's annotations of one device.
    pub(crate) fn of(annotations: &[Annotation], device: usize) -> Self {
        let mut sorted: Vec<&Annotation> = annotations
            .iter()
            .filter(|annotation| annotation.device == device as i64)
            .collect();
        sorted.sort_by_key(|annotation| annotation.time_us);
        let mut open: Vec<NameId> = Vec::new();
        let mut changes = Vec::with_capacity(sorted.len());
        for annotation in sorted {
            match annotation.stage {
                AnnotationStage::Start => open.push(annotation.name),
                AnnotationStage::End => {
                    // Ranges of several threads need not be nested: the last one of this name ends.
                    if let Some(at) = open.iter().rposition(|name| *name == annotation.name) {
                        open.remove(at);
                    }
                }
                AnnotationStage::Other => continue,
            }
            changes.push((
                annotation.time_us,
                open.last().copied().unwrap_or(NameId::EMPTY),
            ));
        }
        Self { changes }
    }

    /// The innermost range that is open at a time; the empty name if none is.
    pub(crate) fn at(&self, time_us: i64) -> NameId {
        let after = self.changes.partition_point(|(time, _)| *time <= time_us);
        after
            .checked_sub(1)
            .map_or(NameId::EMPTY, |at| self.changes[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_open_range_is_the_one_that_started_last() {
        let annotation = |time_us, name, stage| Annotation {
            name: NameId(name),
            stage,
            device: 0,
            time_us,
        };
        let ranges = OpenRanges::of(
            &[
                annotation(10, 1, AnnotationStage::Start),
                annotation(20, 2, AnnotationStage::Start),
                annotation(30, 2, AnnotationStage::End),
                annotation(40, 1, AnnotationStage::End),
            ],
            0,
        );
        let at: Vec<u32> = [5, 10, 25, 30, 40]
            .iter()
            .map(|time| ranges.at(*time).0)
            .collect();
        assert_eq!(at, [0, 1, 2, 1, 0]);
    }
}
