//! Guesses for sizes that were not recorded, from those that were.

use ghostgpu_library_sizes::{Answer, Canonical, Compact};

use super::plan_model;

/// What is known about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Recorded(Answer),
    Guessed(Answer),
}

/// The recorded answer, or a guess; `None` if nothing of the kind was recorded.
pub fn find(recording: &Compact, canonical: &Canonical) -> Option<Found> {
    let (series, has_recorded_labels) = recording.find(canonical)?;
    let place = series.place(canonical)?;
    if let Some(values) = series.points.get(&place) {
        let answer = series.answer(values);
        return Some(match has_recorded_labels {
            true => Found::Recorded(answer),
            false => Found::Guessed(answer),
        });
    }
    let values = match plan_model::is_plan(canonical) {
        true => vec![plan_model::work_bytes(recording, canonical, series)?],
        false => series.estimate(&place)?,
    };
    Some(Found::Guessed(series.answer(&values)))
}

#[cfg(test)]
mod tests {
    use ghostgpu_library_sizes::Question;

    use super::*;
    use crate::library_sizes::shipped::recording;

    fn find_bytes(function: &str, arguments: &str, output: &str) -> (bool, i64) {
        let question = Question {
            function: function.to_owned(),
            arguments: arguments.to_owned(),
        };
        let found = find(recording(), &Canonical::new(&question)).expect("known");
        let (is_recorded, answer) = match found {
            Found::Recorded(answer) => (true, answer),
            Found::Guessed(answer) => (false, answer),
        };
        (is_recorded, answer.number(output).expect("a number"))
    }

    #[test]
    fn what_single_operations_took_on_the_card_is_answered() {
        // From `ground_truth/h200/micro_ops.json.gz`: bytes that PyTorch allocated.
        let elements = |function, arguments| find_bytes(function, arguments, "elements");
        let getrf = "cusolverDnSgetrf_bufferSize";
        assert_eq!(elements(getrf, "m=64 n=64 lda=64"), (true, 1280 / 4));
        assert_eq!(
            elements(getrf, "m=1024 n=1024 lda=1024"),
            (true, 12_544 / 4)
        );
        let device = |function, arguments| find_bytes(function, arguments, "device_bytes");
        assert_eq!(
            device(
                "cusolverDnXpotrf_bufferSize",
                "triangle=0 n=512 a_type=0 lda=512 compute_type=0"
            ),
            (true, 1152)
        );
        assert_eq!(
            device(
                "cusolverDnXgeqrf_bufferSize",
                "m=256 n=64 a_type=0 lda=256 tau_type=0 compute_type=0"
            ),
            (true, 3_145_856)
        );
        let plan = "n=10007 batch=16 from=f32:10007/1/10007 to=c32:10007/1/5004 in=c32";
        let work = find_bytes("cufftXtMakePlanMany", plan, "work_bytes");
        assert_eq!(work, (true, 3_233_216));
    }

    #[test]
    fn square_sizes_between_recorded_ones_are_guessed_well() {
        // Leaves each recorded size out in turn.
        let mut worst = 0.0_f64;
        for (family, series) in recording().series() {
            let is_square = ["syevd", "Xsyevd", "geqrf", "Xgeqrf"].contains(&family);
            if !is_square {
                continue;
            }
            for (place, values) in &series.points {
                let mut others = series.clone();
                others.points.remove(place);
                let is_inside = |beyond: fn(&i64, &i64) -> bool| {
                    others
                        .points
                        .keys()
                        .any(|other| beyond(&other[0], &place[0]))
                };
                if !is_inside(i64::lt) || !is_inside(i64::gt) || place[0] > 8192 {
                    continue;
                }
                let guess = others.estimate(place).expect("a guess")[0];
                let error = (guess - values[0]).abs() as f64 / values[0].max(1) as f64;
                worst = worst.max(error);
            }
        }
        assert!(worst < 0.25, "{worst}");
    }
}
