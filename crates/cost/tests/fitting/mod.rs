//! The search for the shares of [`Efficiency`] with which step times are closest to those measured.

use crate::recorded::Recorded;
use ghostgpu_cost::{Efficiency, Rates, step_time_at};

pub type Share = (&'static str, fn(&mut Efficiency) -> &mut f64);

/// What is fitted; [`Efficiency::FITTED`] says why the others are not.
pub const SHARES: [Share; 15] = [
    ("matrix_product", |e| &mut e.matrix_product),
    ("unaligned_product", |e| &mut e.unaligned_product),
    ("convolution", |e| &mut e.convolution),
    ("convolution_channels_last", |e| {
        &mut e.convolution_channels_last
    }),
    ("conversion_passes", |e| &mut e.conversion_passes),
    ("single_attention", |e| &mut e.single_attention),
    ("single_attention_backward", |e| {
        &mut e.single_attention_backward
    }),
    ("half_attention", |e| &mut e.half_attention),
    ("half_attention_backward", |e| {
        &mut e.half_attention_backward
    }),
    ("memory", |e| &mut e.memory),
    ("link", |e| &mut e.link),
    ("host_with_graph_seconds", |e| {
        &mut e.host_with_graph_seconds
    }),
    ("host_repeated_seconds", |e| &mut e.host_repeated_seconds),
    ("host_without_graph_seconds", |e| {
        &mut e.host_without_graph_seconds
    }),
    ("host_in_backward_seconds", |e| {
        &mut e.host_in_backward_seconds
    }),
];

/// By how much a share is moved, from coarse to fine.
const FACTORS: [f64; 5] = [1.3, 1.1, 1.03, 1.01, 1.003];

/// The mean of |ln(predicted / measured)|, which an odd measurement moves little.
pub fn error(cases: &[Recorded], rates: &Rates, efficiency: &Efficiency) -> f64 {
    let errors = cases.iter().map(|case| {
        let predicted = step_time_at(&case.work, rates, efficiency).seconds;
        (predicted / case.measured).ln().abs()
    });
    #[allow(clippy::cast_precision_loss)]
    let number = cases.len() as f64;
    errors.sum::<f64>() / number
}

/// Move one share after the other by a factor as long as that helps, by smaller and smaller factors.
pub fn fit(cases: &[Recorded], rates: &Rates, start: Efficiency) -> (Efficiency, f64) {
    let mut best = (start, error(cases, rates, &start));
    for factor in FACTORS {
        loop {
            let before = best.1;
            for (_, share) in SHARES {
                for factor in [factor, 1.0 / factor] {
                    loop {
                        let mut moved = best.0;
                        *share(&mut moved) *= factor;
                        let error = error(cases, rates, &moved);
                        if error >= best.1 - 1e-9 {
                            break;
                        }
                        best = (moved, error);
                    }
                }
            }
            if best.1 >= before - 1e-7 {
                break;
            }
        }
    }
    best
}
