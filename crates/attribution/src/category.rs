//! The category of an allocation, from everything that is known about it.

use ghostgpu_recording::{Category, Stage};
use ghostgpu_session::memory_log::OwnerKind;

use crate::sharding::Exchange;

/// Everything that is known about one allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence {
    /// The strongest kind that the agent recognised.
    pub owner: Option<OwnerKind>,
    /// A library used it as a workspace.
    pub is_workspace: bool,
    /// Its purpose, if code that distributes a model over ranks made it.
    pub exchange: Option<Exchange>,
    /// Ranks exchanged it, or a part of it.
    pub is_exchanged: bool,
    /// The stage and step in which it was made; `None` if it is older than the recording.
    pub made_in: Option<(Stage, u32)>,
    /// The stage and step in which it was freed; `None` if it lived to the end.
    pub freed_in: Option<(Stage, u32)>,
}

/// How the recording ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The number of completed optimizer steps.
    pub step: u32,
    /// Memory ran out, and nothing was allocated afterwards, so what was in use then was never freed.
    pub is_out_of_memory: bool,
}

impl Evidence {
    /// Adds a kind that the agent recognised; the stronger one counts.
    pub fn recognise(&mut self, kind: OwnerKind) -> bool {
        let is_stronger = self.owner.is_none_or(|known| kind < known);
        if is_stronger {
            self.owner = Some(kind);
        }
        is_stronger
    }

    pub fn category(&self, end: End) -> Category {
        // While its layer runs, the agent also recognises these as parameters of the module.
        if self.exchange == Some(Exchange::GatheredParameters) {
            return Category::Gathered;
        }
        match self.owner {
            Some(OwnerKind::Parameter) => return Category::Parameter,
            Some(OwnerKind::Buffer) => return Category::Buffer,
            Some(OwnerKind::Gradient) => return Category::Gradient,
            Some(OwnerKind::OptimizerState) => return Category::OptimizerState,
            _ => {}
        }
        if self.is_workspace {
            return Category::Workspace;
        }
        match self.owner {
            Some(OwnerKind::Input) => Category::Input,
            Some(OwnerKind::SavedForBackward) => Category::Activation,
            _ if self.exchange.is_some() => Category::Communication,
            _ if self.lived_for_backward() => Category::Activation,
            _ if self.is_exchanged => Category::Communication,
            _ if self.outlived_its_step(end) => Category::Kept,
            _ => Category::Temporary,
        }
    }

    /// Whether it was made in a forward pass and freed in a backward pass. The script itself waits meanwhile, so only the
    /// graph can have freed it.
    fn lived_for_backward(&self) -> bool {
        matches!(self.made_in, Some((Stage::Forward, _)))
            && matches!(self.freed_in, Some((Stage::Backward, _)))
    }

    fn outlived_its_step(&self, end: End) -> bool {
        let made = self.made_in.map_or(0, |(_, step)| step);
        match self.freed_in {
            Some((_, freed)) => freed > made,
            None if end.is_out_of_memory => end.step > made,
            None => end.step > made || end.step == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: End = End {
        step: 3,
        is_out_of_memory: false,
    };

    #[test]
    fn each_kind_of_evidence_leads_to_its_category() {
        use OwnerKind as Kind;
        let forward = Some((Stage::Forward, 1));
        let backward = Some((Stage::Backward, 1));
        for (owner, is_workspace, made_in, freed_in, expected) in [
            (
                Some(Kind::Parameter),
                true,
                forward,
                None,
                Category::Parameter,
            ),
            (
                Some(Kind::Gradient),
                false,
                backward,
                None,
                Category::Gradient,
            ),
            (None, true, forward, backward, Category::Workspace),
            (
                Some(Kind::SavedForBackward),
                true,
                forward,
                backward,
                Category::Workspace,
            ),
            (Some(Kind::Input), false, forward, backward, Category::Input),
            (
                Some(Kind::SavedForBackward),
                false,
                forward,
                None,
                Category::Activation,
            ),
            (None, false, forward, backward, Category::Activation),
            (None, false, backward, backward, Category::Temporary),
            (
                None,
                false,
                forward,
                Some((Stage::Forward, 2)),
                Category::Kept,
            ),
            (None, false, forward, None, Category::Kept),
            (
                None,
                false,
                Some((Stage::Script, 3)),
                None,
                Category::Temporary,
            ),
        ] {
            let evidence = Evidence {
                owner,
                is_workspace,
                made_in,
                freed_in,
                ..Evidence::default()
            };
            assert_eq!(evidence.category(END), expected, "{evidence:?}");
        }
    }

    #[test]
    fn what_ranks_exchange_is_told_apart_unless_it_is_something_better() {
        use Exchange::{Buffer, GatheredParameters};
        use OwnerKind as Kind;
        let forward = Some((Stage::Forward, 1));
        let backward = Some((Stage::Backward, 1));
        for (owner, exchange, is_exchanged, freed_in, expected) in [
            (
                Some(Kind::Parameter),
                Some(GatheredParameters),
                true,
                forward,
                Category::Gathered,
            ),
            (
                Some(Kind::SavedForBackward),
                Some(GatheredParameters),
                false,
                backward,
                Category::Gathered,
            ),
            (Some(Kind::Parameter), None, true, None, Category::Parameter),
            (
                Some(Kind::Gradient),
                Some(Buffer),
                true,
                None,
                Category::Gradient,
            ),
            (
                Some(Kind::SavedForBackward),
                None,
                true,
                backward,
                Category::Activation,
            ),
            (None, Some(Buffer), false, backward, Category::Communication),
            (None, None, true, backward, Category::Activation),
            (None, None, true, None, Category::Communication),
            (None, None, true, forward, Category::Communication),
        ] {
            let evidence = Evidence {
                owner,
                exchange,
                is_exchanged,
                made_in: forward,
                freed_in,
                ..Evidence::default()
            };
            assert_eq!(evidence.category(END), expected, "{evidence:?}");
        }
    }

    #[test]
    fn what_was_in_use_when_memory_ran_out_is_not_kept() {
        let evidence = Evidence {
            made_in: Some((Stage::Forward, 0)),
            ..Evidence::default()
        };
        let failed = End {
            step: 0,
            is_out_of_memory: true,
        };
        assert_eq!(evidence.category(failed), Category::Temporary);
        let ended = End {
            is_out_of_memory: false,
            ..failed
        };
        assert_eq!(evidence.category(ended), Category::Kept);
    }

    #[test]
    fn the_stronger_word_counts_whatever_the_order() {
        let mut evidence = Evidence::default();
        assert!(evidence.recognise(OwnerKind::SavedForBackward));
        assert!(evidence.recognise(OwnerKind::Parameter));
        assert!(!evidence.recognise(OwnerKind::Input));
        assert_eq!(evidence.owner, Some(OwnerKind::Parameter));
    }
}
