//! A number of bytes for each category.

use ghostgpu_recording::Category;

/// Bytes by category, in the order of [`Category::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCategory([u64; Category::ALL.len()]);

impl ByCategory {
    pub fn get(&self, category: Category) -> u64 {
        self.0[category as usize]
    }

    pub fn add(&mut self, category: Category, bytes: u64) {
        let sum = &mut self.0[category as usize];
        *sum = sum.saturating_add(bytes);
    }

    pub fn subtract(&mut self, category: Category, bytes: u64) {
        let sum = &mut self.0[category as usize];
        *sum = sum.saturating_sub(bytes);
    }

    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// All categories, including empty ones.
    pub fn iter(&self) -> impl Iterator<Item = (Category, u64)> + '_ {
        Category::ALL
            .into_iter()
            .map(|category| (category, self.get(category)))
    }

    /// The category with most bytes, if there are any; of equal ones the first.
    pub fn largest(&self) -> Option<(Category, u64)> {
        let all = self.iter().filter(|(_, bytes)| *bytes > 0);
        all.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_its_own_sum() {
        for category in Category::ALL {
            let mut sums = ByCategory::default();
            sums.add(category, 7);
            for (other, bytes) in sums.iter() {
                assert_eq!(bytes, if other == category { 7 } else { 0 });
            }
            assert_eq!(sums.largest(), Some((category, 7)));
        }
        assert_eq!(ByCategory::default().largest(), None);
    }
}
