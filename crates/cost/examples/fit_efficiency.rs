//! Fits the shares of [`Efficiency`] to step times of GPT-2 and ResNet-50 on an H200.
//!
//! ```sh
//! cargo run --release -p ghostgpu-cost --example fit_efficiency
//! ```
//!
//! It is done twice: from the shares in the code, and from values that know nothing. Where the two columns
//! differ, the measurements do not say what the share is.

#[path = "../tests/fitting/mod.rs"]
mod fitting;
#[path = "../tests/recorded/mod.rs"]
mod recorded;

use fitting::{SHARES, error, fit};
use ghostgpu_cost::Efficiency;
use recorded::{FITTED, Recorded};

/// Half of every peak, and twenty microseconds for every call.
fn knowing_nothing() -> Efficiency {
    let mut start = Efficiency::FITTED;
    for (name, share) in SHARES {
        *share(&mut start) = if name.ends_with("seconds") {
            20e-6
        } else {
            0.5
        };
    }
    start.conversion_passes = 2.0;
    start
}

fn main() {
    let rates = recorded::rates();
    let (fitted, held_out): (Vec<_>, Vec<_>) = recorded::cases()
        .into_iter()
        .partition(|case| FITTED.contains(&case.model.as_str()));
    println!("{} cases to fit, {} held out", fitted.len(), held_out.len());
    let present = Efficiency::FITTED;
    let near = fit(&fitted, &rates, present);
    let far = fit(&fitted, &rates, knowing_nothing());
    println!(
        "{:28} {:>12} {:>12} {:>12}",
        "", "in the code", "fitted", "from nothing"
    );
    for (name, share) in SHARES {
        let value = |efficiency: &Efficiency| *share(&mut efficiency.clone());
        println!(
            "{name:28} {:>12.3e} {:>12.3e} {:>12.3e}",
            value(&present),
            value(&near.0),
            value(&far.0)
        );
    }
    let errors = |cases: &[Recorded]| {
        [&present, &near.0, &far.0].map(|efficiency| error(cases, &rates, efficiency))
    };
    for (what, cases) in [("mean error, fitted", &fitted), ("held out", &held_out)] {
        let [present, near, far] = errors(cases).map(|error| 100.0 * error);
        println!("{what:28} {present:>10.2} % {near:>10.2} % {far:>10.2} %");
    }
    let mut worst: Vec<(f64, &str)> = fitted
        .iter()
        .map(|case| {
            (
                error(std::slice::from_ref(case), &rates, &near.0),
                case.name.as_str(),
            )
        })
        .collect();
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (error, name) in worst.into_iter().take(6) {
        println!("{:.0} % {name}", 100.0 * error);
    }
}
