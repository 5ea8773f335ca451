//! What a collective of several ranks writes, from what each of them put in. Pure.

use ghostgpu_rendezvous::{Function, element_bytes};

/// A collective, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    pub function: Function,
    /// `ncclDataType_t`.
    pub data_type: i32,
    /// `ncclRedOp_t`.
    pub operation: i32,
    pub root: u32,
    /// What one rank puts in.
    pub bytes: usize,
}

impl Collective {
    /// What one rank gets, if so many take part.
    pub fn result_bytes(&self, ranks: usize) -> usize {
        match self.function {
            Function::AllGather => self.bytes.saturating_mul(ranks),
            Function::ReduceScatter => self.bytes / ranks.max(1),
            _ => self.bytes,
        }
    }

    /// What `rank` gets. `put_in` says what each rank put in, where that is known.
    pub fn result(
        &self,
        rank: usize,
        ranks: usize,
        put_in: impl Fn(usize) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let of_all = || {
            let all = (0..ranks).map(&put_in);
            all.collect::<Option<Vec<Vec<u8>>>>()
        };
        match self.function {
            Function::Broadcast => put_in(self.root as usize),
            Function::AllGather => Some(of_all()?.concat()),
            Function::AllReduce => self.reduced(&of_all()?),
            Function::ReduceScatter => {
                let part = self.bytes / ranks.max(1);
                let whole = self.reduced(&of_all()?)?;
                Some(whole.get(rank * part..(rank + 1) * part)?.to_vec())
            }
            Function::AllToAll => {
                let part = self.bytes / ranks.max(1);
                let parts = of_all()?;
                let own = parts
                    .iter()
                    .map(|each| each.get(rank * part..(rank + 1) * part));
                Some(own.collect::<Option<Vec<&[u8]>>>()?.concat())
            }
            _ => None,
        }
    }

    fn reduced(&self, all: &[Vec<u8>]) -> Option<Vec<u8>> {
        const SUM: i32 = 0;
        const PRODUCT: i32 = 1;
        const MAXIMUM: i32 = 2;
        const MINIMUM: i32 = 3;
        let size = element_bytes(self.data_type);
        // Agreements are integers; what floats add up to is nobody's business here.
        let is_signed = match self.data_type {
            0 | 2 | 4 => true,
            1 | 3 | 5 => false,
            _ => return None,
        };
        let read = |bytes: &[u8]| -> i128 {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(bytes);
            let number = u64::from_le_bytes(wide);
            let unused = 64 - 8 * size as u32;
            match is_signed {
                true => i128::from(((number << unused) as i64) >> unused),
                false => i128::from(number),
            }
        };
        let combine = |one: i128, other: i128| match self.operation {
            SUM => Some(one.wrapping_add(other)),
            PRODUCT => Some(one.wrapping_mul(other)),
            MAXIMUM => Some(one.max(other)),
            MINIMUM => Some(one.min(other)),
            _ => None,
        };
        let mut result = Vec::with_capacity(self.bytes);
        for start in (0..self.bytes).step_by(size) {
            let mut numbers = all
                .iter()
                .map(|bytes| bytes.get(start..start + size).map(read));
            let first = numbers.next()??;
            let number = numbers.try_fold(first, |sum, number| combine(sum, number?))?;
            result.extend(&number.to_le_bytes()[..size]);
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT32: i32 = 2;

    fn numbers(values: &[i32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn every_rank_gets_what_nccl_would_give_it() {
        let put_in = [numbers(&[1, -2]), numbers(&[30, 40])];
        let cases: [(Function, i32, &[i32], &[i32]); 7] = [
            (Function::AllReduce, 0, &[31, 38], &[31, 38]),
            (Function::AllReduce, 2, &[30, 40], &[30, 40]),
            (Function::AllReduce, 3, &[1, -2], &[1, -2]),
            (Function::ReduceScatter, 0, &[31], &[38]),
            (Function::AllGather, 0, &[1, -2, 30, 40], &[1, -2, 30, 40]),
            (Function::Broadcast, 0, &[30, 40], &[30, 40]),
            (Function::AllToAll, 0, &[1, 30], &[-2, 40]),
        ];
        for (function, operation, first, second) in cases {
            let collective = Collective {
                function,
                data_type: INT32,
                operation,
                root: 1,
                bytes: 8,
            };
            for (rank, expected) in [first, second].into_iter().enumerate() {
                let result = collective.result(rank, 2, |rank| put_in.get(rank).cloned());
                assert_eq!(result, Some(numbers(expected)), "{function:?} {rank}");
                assert_eq!(collective.result_bytes(2), 4 * expected.len());
            }
        }
    }

    #[test]
    fn what_one_rank_does_not_know_nobody_knows() {
        let collective = |function| Collective {
            function,
            data_type: INT32,
            operation: 0,
            root: 0,
            bytes: 4,
        };
        let put_in = |rank: usize| (rank == 0).then(|| numbers(&[5]));
        assert_eq!(collective(Function::AllReduce).result(0, 2, put_in), None);
        assert_eq!(
            collective(Function::Broadcast).result(1, 2, put_in),
            Some(numbers(&[5]))
        );
    }
}
