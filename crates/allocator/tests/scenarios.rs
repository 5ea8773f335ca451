//! Short scenarios with their expected results, one file each in `scenarios/`:
//!
//!     release 2.11                       the first line of a file; several releases share one scenario
//!     settings TEXT
//!     card MIB
//!     fraction PART
//!     NAME = malloc BYTES [on STREAM]    an allocation; `-> N+OFFSET` if it must lie OFFSET bytes into
//!                                        the N-th segment that came from the driver, counted from 0
//!     malloc BYTES [on STREAM] fails     there is no memory for it; `fails: TEXT` with these words in it
//!     free NAME, use NAME on STREAM, flush, hold, let go
//!     pool ID [helps], enter ID, leave ID, drop ID
//!     stat KEY VALUE                     a figure of memory_stats
//!     events NAME NAME ...               what was traced since the last such line

use std::collections::HashMap;

use ghostgpu_allocator::{
    Action, Address, AllocError, Allocator, PoolId, PoolOptions, Release, ScopeFilter, Settings,
    SimpleDriver, StreamId, ThreadId, TraceEvent,
};

struct Story {
    release: Release,
    allocator: Allocator<SimpleDriver, Vec<TraceEvent>>,
    named: HashMap<String, Address>,
    told: usize,
}

impl Story {
    fn new(release: Release, settings: &str, card_mib: u64) -> Self {
        let settings = Settings::parse(settings, release).expect("settings of this release");
        let driver = SimpleDriver::new(card_mib << 20);
        Self {
            release,
            allocator: Allocator::with_trace(release, settings, driver, Vec::new()),
            named: HashMap::new(),
            told: 0,
        }
    }

    /// Where the N-th segment that was allocated or first mapped begins.
    fn segment(&self, number: usize) -> Address {
        let grown =
            |event: &&TraceEvent| matches!(event.action, Action::SegmentAlloc | Action::SegmentMap);
        let event = self.allocator.sink().iter().filter(grown).nth(number);
        event.expect("as many segments").address
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let on = words.iter().position(|&word| word == "on");
        let stream = StreamId(on.map_or(0, |place| words[place + 1].parse().expect("a stream")));
        match words[..] {
            ["fraction", part] => {
                self.allocator
                    .set_memory_fraction(part.parse().expect("a number"));
            }
            [name, "=", "malloc", bytes, ..] => {
                let bytes = bytes.parse().expect("a number");
                let got = self.allocator.malloc(bytes, stream).expect("memory for it");
                self.named.insert(name.to_owned(), got.address);
                if let Some((_, place)) = line.split_once("-> ") {
                    let (segment, offset) = place.split_once('+').expect("N+OFFSET");
                    let segment = self.segment(segment.parse().expect("a number"));
                    let offset = offset.parse().expect("a number");
                    assert_eq!(got.address, segment.plus(offset), "{line}");
                }
            }
            ["malloc", bytes, ..] => {
                let error = self
                    .allocator
                    .malloc(bytes.parse().expect("a number"), stream);
                let error = error.expect_err("no memory for it");
                if let Some((_, words)) = line.split_once("fails: ") {
                    let text = match error {
                        AllocError::OutOfMemory(oom) => oom.text(self.release, 0, &[]),
                        other => other.to_string(),
                    };
                    assert!(text.contains(words), "{line}\n{text}");
                }
            }
            ["free", name] => {
                let address = self.named.remove(name).expect("something of that name");
                self.allocator.free(address).expect("it is live");
            }
            ["use", name, ..] => {
                self.allocator
                    .record_stream(self.named[name], stream)
                    .expect("it is live");
            }
            ["flush"] => self.allocator.empty_cache().expect("a flush is possible"),
            ["hold"] => self.allocator.driver_mut().hold_events(0),
            ["let", "go"] => self.allocator.driver_mut().hold_events(u64::MAX),
            ["pool", id, ref rest @ ..] => {
                let options = PoolOptions {
                    use_on_oom: rest.contains(&"helps"),
                    no_split: rest.contains(&"unsplit"),
                    ..PoolOptions::default()
                };
                self.allocator.create_pool(pool(id), options);
            }
            ["enter", id] => {
                let filter = ScopeFilter::Thread(ThreadId(0));
                self.allocator
                    .begin_scope(pool(id), filter)
                    .expect("it is not open");
            }
            ["leave", id] => {
                self.allocator.end_scope(pool(id)).expect("it is open");
                self.allocator.release_pool(pool(id)).expect("it is in use");
            }
            ["drop", id] => self.allocator.destroy_pool(pool(id)).expect("it is there"),
            ["stat", key, value] => {
                let stats = self.allocator.stats().named(self.release);
                let found = stats.iter().find(|(name, _)| name == key);
                let found = found.unwrap_or_else(|| panic!("no statistic {key}")).1;
                assert_eq!(found, value.parse::<i64>().expect("a number"), "{line}");
            }
            ["events", ref expected @ ..] => {
                let events = &self.allocator.sink()[self.told..];
                let names: Vec<&str> = events.iter().map(|event| event.action.name()).collect();
                assert_eq!(names, expected, "{line}");
                self.told = self.allocator.sink().len();
            }
            _ => panic!("cannot read {line:?}"),
        }
    }
}

fn pool(id: &str) -> PoolId {
    PoolId(0, id.parse().expect("a number"))
}

fn tell(text: &str) -> usize {
    let mut header: HashMap<&str, &str> = HashMap::new();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" => {}
            "release" | "settings" | "card" => {
                header.insert(word, rest);
            }
            _ => lines.push((number + 1, line)),
        }
    }
    let card = header
        .get("card")
        .map_or(80 << 10, |mib| mib.parse().expect("a number"));
    let releases = header["release"].split_whitespace();
    for release in releases {
        let release = release.parse().expect("a release");
        let mut story = Story::new(release, header.get("settings").unwrap_or(&""), card);
        for &(number, line) in &lines {
            let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story.line(line)));
            assert!(told.is_ok(), "torch {release}, line {number}: {line}");
        }
    }
    lines.len()
}

#[test]
fn every_scenario_ends_as_it_says() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios");
    let mut files = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder of scenarios") {
        let path = entry.expect("a file in it").path();
        let text = std::fs::read_to_string(&path).expect("a readable scenario");
        match std::panic::catch_unwind(|| tell(&text)) {
            Ok(lines) => assert!(lines >= 2, "{} tells nothing", path.display()),
            Err(_) => wrong.push(path),
        }
        files += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(files >= 16);
}
