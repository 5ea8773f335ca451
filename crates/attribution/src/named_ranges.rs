//! Ranges of time that a script named with `record_function`.

use std::collections::HashMap;

use ghostgpu_recording::{NameId, NamedRange};
use ghostgpu_snapshot::{Annotation, AnnotationStage};

/// The ranges of one device, and which of them is the innermost at a time.
#[derive(Debug, Default)]
pub struct NamedRanges {
    pub ranges: Vec<NamedRange>,
    /// When the innermost range changes, and to which one, in the order of time.
    changes: Vec<(i64, NameId)>,
}

impl NamedRanges {
    /// From a snapshot's annotations of one device; `name` adds a text to the recording, and times are relative to the
    /// first event.
    pub fn of(
        annotations: &[Annotation],
        device: usize,
        first_us: i64,
        mut name: impl FnMut(ghostgpu_snapshot::NameId) -> NameId,
    ) -> Self {
        let mut sorted: Vec<&Annotation> = annotations
            .iter()
            .filter(|annotation| annotation.device == device as i64)
            .collect();
        sorted.sort_by_key(|annotation| annotation.time_us);
        let since_first =
            |time_us: i64| u64::try_from(time_us.saturating_sub(first_us)).unwrap_or(0);
        let mut all = Self::default();
        // Names and indices of the open ranges, outermost first.
        let mut open: Vec<(NameId, usize)> = Vec::new();
        // How many ranges of each name are open. An end without a beginning is common, and this avoids a search for it.
        let mut count: HashMap<NameId, usize> = HashMap::new();
        for annotation in sorted {
            let name = name(annotation.name);
            match annotation.stage {
                AnnotationStage::Start => {
                    open.push((name, all.ranges.len()));
                    *count.entry(name).or_default() += 1;
                    all.ranges.push(NamedRange {
                        name,
                        begin_us: since_first(annotation.time_us),
                        end_us: None,
                    });
                }
                AnnotationStage::End if count.get(&name).is_some_and(|open| *open > 0) => {
                    // Ranges of several threads need not be nested, so the last one with this name ends.
                    if let Some(at) = open.iter().rposition(|(open, _)| *open == name) {
                        let (_, range) = open.remove(at);
                        all.ranges[range].end_us = Some(since_first(annotation.time_us));
                        count.entry(name).and_modify(|open| *open -= 1);
                    }
                }
                AnnotationStage::End | AnnotationStage::Other => continue,
            }
            let innermost = open.last().map_or(NameId(0), |(name, _)| *name);
            all.changes.push((annotation.time_us, innermost));
        }
        all
    }

    /// The innermost range that is open at a time; `NameId(0)` if none is.
    pub fn at(&self, time_us: i64) -> NameId {
        let after = self.changes.partition_point(|(time, _)| *time <= time_us);
        after
            .checked_sub(1)
            .map_or(NameId(0), |at| self.changes[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_open_range_is_the_one_that_started_last() {
        let annotation = |time_us, name, stage| Annotation {
            name: ghostgpu_snapshot::NameId(name),
            stage,
            device: 0,
            time_us,
        };
        let ranges = NamedRanges::of(
            &[
                annotation(10, 1, AnnotationStage::Start),
                annotation(20, 2, AnnotationStage::Start),
                annotation(30, 2, AnnotationStage::End),
                annotation(35, 2, AnnotationStage::End),
                annotation(40, 1, AnnotationStage::End),
            ],
            0,
            10,
            |name| NameId(name.0),
        );
        let at: Vec<u32> = [5, 10, 25, 30, 40]
            .iter()
            .map(|time| ranges.at(*time).0)
            .collect();
        assert_eq!(at, [0, 1, 2, 1, 0]);
        let spans: Vec<_> = ranges
            .ranges
            .iter()
            .map(|range| (range.name.0, range.begin_us, range.end_us))
            .collect();
        assert_eq!(spans, [(1, 0, Some(30)), (2, 10, Some(20))]);
    }
}
