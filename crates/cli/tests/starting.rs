//! What can be rehearsed: scripts, modules, shell scripts, notebooks, programs beside a python.

mod common;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use common::World;

/// A folder with a python of its own in it, as an environment has one.
fn environment(world: &World) -> PathBuf {
    let python = std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))
        .map(|folder| folder.join("python3"))
        .find(|program| program.exists())
        .expect("these tests need a python3 on the PATH");
    let folder = world.path("environment/bin");
    std::fs::create_dir_all(&folder).expect("folder");
    for name in ["python", "python3"] {
        let wrapper = format!("#!/bin/sh\nexec {} \"$@\"\n", python.display());
        world.executable(&format!("environment/bin/{name}"), &wrapper);
    }
    symlink("python", folder.join("python-of-here")).expect("link");
    folder
}

fn notebook(cells: &[&str]) -> String {
    let cells: Vec<_> = cells
        .iter()
        .map(|source| serde_json::json!({ "cell_type": "code", "source": source }))
        .collect();
    serde_json::json!({ "nbformat": 4, "metadata": {}, "cells": cells }).to_string()
}

/// The code of a script that ends well and puts nothing on the card.
const DID_NOT_USE_CARD: i32 = 6;

#[test]
fn a_module_is_run_as_python_does() {
    let world = World::new();
    world.script("pkg/train.py", "print(__name__, sys.argv[1:])");
    for words in [
        &["-m", "pkg.train", "--steps", "7"][..],
        &["--", "python3", "-m", "pkg.train", "--steps", "7"],
    ] {
        let outcome = world.rehearse(words);
        outcome.assert_code(DID_NOT_USE_CARD);
        assert!(
            outcome.stdout.contains("__main__ ['--steps', '7']"),
            "{outcome:#?}"
        );
    }
}

#[test]
fn a_shell_script_is_run_by_a_shell_and_its_python_is_the_one_that_was_named() {
    let world = World::new();
    let python = environment(&world).join("python");
    let python = python.to_str().expect("plain");
    world.script("train.py", "print('from', sys.argv[1])");
    world.write(
        "work/train.sh",
        "set -e\npython train.py \"$1\"\ncommand -v python\n",
    );
    for words in [
        &["--python", python, "train.sh", "here"][..],
        &["--python", python, "--", "bash", "train.sh", "here"],
    ] {
        let outcome = world.rehearse(words);
        outcome.assert_code(DID_NOT_USE_CARD);
        assert!(
            outcome.stdout.contains(&format!("from here\n{python}\n")),
            "{outcome:#?}"
        );
    }
}

#[test]
fn a_launcher_is_found_beside_the_python_that_was_named() {
    let world = World::new();
    let python = environment(&world).join("python");
    let python = python.to_str().expect("plain");
    world.executable(
        "environment/bin/launch-training",
        "#!/bin/sh\necho launched \"$@\"\n",
    );
    let words = ["--", "launch-training", "--ranks", "2"];
    let outcome = world.rehearse(&[&["--python", python], &words[..]].concat());
    outcome.assert_code(DID_NOT_USE_CARD);
    assert!(
        outcome.stdout.contains("launched --ranks 2"),
        "{outcome:#?}"
    );
    world
        .rehearse(&words)
        .assert_failure("`launch-training` is neither a script nor a program on the PATH");
}

#[test]
fn the_cells_of_a_notebook_are_run_without_what_only_ipython_knows() {
    let world = World::new();
    let cells = [
        "%matplotlib inline\n!pip install torch \\\n  --upgrade\nimport os, sys\ntext = '''\n%d\n'''",
        "%%bash\nexit 1",
        "%%time\nfiles = !ls\nfor number in range(2):\n    !echo {number}\n    print('number', number)\n",
        "display(sys.argv[1:], files, text.strip(), os.path.basename(os.getcwd()))",
    ];
    world.write("work/deep/train.ipynb", &notebook(&cells));
    let outcome = world.rehearse(&["deep/train.ipynb", "--lr", "1"]);
    outcome.assert_code(DID_NOT_USE_CARD);
    assert!(
        outcome
            .stdout
            .contains("number 0\nnumber 1\n['--lr', '1'] [] %d deep\n"),
        "{outcome:#?}"
    );
    let sentence =
        "left out 6 lines of train.ipynb that only IPython knows (cell 1: `%matplotlib inline`)";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
}

#[test]
fn an_error_in_a_notebook_names_the_cell_and_the_line_in_it() {
    let world = World::new();
    world.write(
        "work/train.ipynb",
        &notebook(&["x = 1", "def f():\n    return x / 0\n\nf()"]),
    );
    let outcome = world.rehearse(&["train.ipynb"]);
    outcome.assert_code(1);
    let traceback = "train.ipynb (cell 2)\", line 2, in f\n    return x / 0";
    assert!(outcome.stderr.contains(traceback), "{}", outcome.stderr);
    world.write("work/broken.ipynb", &notebook(&["x = ="]));
    let outcome = world.rehearse(&["broken.ipynb"]);
    outcome.assert_code(1);
    assert!(outcome.stderr.contains("broken.ipynb (cell 1)\", line 1"));
}

#[test]
fn what_is_no_notebook_for_python_is_refused_by_name() {
    let world = World::new();
    world.write("work/empty.ipynb", "");
    world.write(
        "work/julia.ipynb",
        r#"{"metadata": {"kernelspec": {"language": "julia"}}, "cells": []}"#,
    );
    for (name, sentence) in [
        ("empty.ipynb", "empty.ipynb is not a Jupyter notebook"),
        (
            "julia.ipynb",
            "julia.ipynb is a notebook for julia, not for Python",
        ),
    ] {
        let outcome = world.rehearse(&[name]);
        outcome.assert_code(1);
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    }
    world
        .rehearse(&["missing.ipynb"])
        .assert_failure("the script `missing.ipynb` does not exist");
}

#[test]
fn nvidia_smi_in_a_script_speaks_of_the_virtual_card() {
    let world = World::new();
    world.script(
        "train.py",
        "import subprocess\n\
         print(subprocess.check_output(['nvidia-smi', '--query-gpu=name,memory.total', '--format=csv'], text=True))",
    );
    let outcome = world.rehearse(&["train.py"]);
    outcome.assert_code(DID_NOT_USE_CARD);
    let expected =
        "name, memory.total [MiB]\nNVIDIA GeForce RTX 3060 (GhostGPU virtual), 12288 MiB\n";
    assert!(outcome.stdout.contains(expected), "{outcome:#?}");
}
