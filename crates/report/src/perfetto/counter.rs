//! A counter with few points, which keeps every high and every low.

use std::io::{self, Write};

use super::packets::{Packets, TrackUuid};

/// A counter track that is fed with every event.
#[derive(Debug)]
pub(crate) struct Counter {
    track: TrackUuid,
    thinning: Thinning,
    written: Option<i64>,
}

impl Counter {
    /// For this many values, of which about `max_points` are written.
    pub(crate) fn new(track: TrackUuid, values: usize, max_points: usize) -> Self {
        Self {
            track,
            thinning: Thinning::new(values, max_points),
            written: None,
        }
    }

    pub(crate) fn see(
        &mut self,
        time_ns: u64,
        value: i64,
        packets: &mut Packets<'_, impl Write>,
    ) -> io::Result<()> {
        match self.thinning.see(time_ns, value) {
            Some(group) => self.write(group, packets),
            None => Ok(()),
        }
    }

    /// Writes the points that were held back.
    pub(crate) fn flush(&mut self, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        match self.thinning.finish() {
            Some(group) => self.write(group, packets),
            None => Ok(()),
        }
    }

    fn write(&mut self, group: Group, packets: &mut Packets<'_, impl Write>) -> io::Result<()> {
        for point in group.points() {
            if self.written != Some(point.value) {
                packets.count(self.track, point.time_ns, point.value)?;
                self.written = Some(point.value);
            }
        }
        Ok(())
    }
}

/// Collects values into groups.
#[derive(Debug)]
struct Thinning {
    values_in_group: usize,
    group: Option<Group>,
}

/// The first, lowest, highest and last of consecutive values.
#[derive(Debug, Clone, Copy)]
struct Group {
    length: usize,
    first: Point,
    lowest: Point,
    highest: Point,
    last: Point,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    position: usize,
    time_ns: u64,
    value: i64,
}

impl Thinning {
    fn new(values: usize, max_points: usize) -> Self {
        let values_in_group = if values <= max_points {
            1
        } else {
            // Four points of each group are kept.
            values.div_ceil((max_points / 4).max(1))
        };
        Self {
            values_in_group,
            group: None,
        }
    }

    fn see(&mut self, time_ns: u64, value: i64) -> Option<Group> {
        let length = self.group.map_or(0, |group| group.length);
        let point = Point {
            position: length,
            time_ns,
            value,
        };
        let group = self.group.get_or_insert(Group {
            length,
            first: point,
            lowest: point,
            highest: point,
            last: point,
        });
        group.length += 1;
        group.last = point;
        if value < group.lowest.value {
            group.lowest = point;
        }
        if value > group.highest.value {
            group.highest = point;
        }
        if group.length >= self.values_in_group {
            return self.group.take();
        }
        None
    }

    fn finish(&mut self) -> Option<Group> {
        self.group.take()
    }
}

impl Group {
    /// In the order of time.
    fn points(self) -> [Point; 4] {
        let mut points = [self.first, self.lowest, self.highest, self.last];
        points.sort_unstable_by_key(|point| point.position);
        points
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thinned(values: &[i64], max_points: usize) -> Vec<i64> {
        let mut thinning = Thinning::new(values.len(), max_points);
        let mut kept = Vec::new();
        for (at, value) in values.iter().enumerate() {
            kept.extend(thinning.see(at as u64, *value));
        }
        kept.extend(thinning.finish());
        let mut points: Vec<Point> = kept.into_iter().flat_map(Group::points).collect();
        assert!(points.is_sorted_by_key(|point| point.time_ns));
        points.dedup_by_key(|point| point.time_ns);
        points.into_iter().map(|point| point.value).collect()
    }

    #[test]
    fn few_values_are_all_kept() {
        assert_eq!(thinned(&[5, 1, 7, 7, 2], 5), [5, 1, 7, 7, 2]);
    }

    #[test]
    fn a_high_inside_a_group_is_kept() {
        let values = [0, 1, 9, 2, 3, 0, 0, 0, -4, 0];
        assert_eq!(thinned(&values, 8), [0, 9, 3, 0, -4, 0]);
    }

    proptest! {
        #[test]
        fn first_last_highest_and_lowest_are_kept_and_points_are_few(
            values in prop::collection::vec(-1000_i64..1000, 1..500),
            max_points in 0_usize..100,
        ) {
            let kept = thinned(&values, max_points);
            prop_assert_eq!(kept.first(), values.first());
            prop_assert_eq!(kept.last(), values.last());
            prop_assert_eq!(kept.iter().max(), values.iter().max());
            prop_assert_eq!(kept.iter().min(), values.iter().min());
            prop_assert!(kept.len() <= max_points.max(4));
        }
    }
}
