//! Programs whose start depends on what they are given to run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What an interpreter is told to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Runs<'a> {
    /// A script or an archive.
    Script(&'a OsStr),
    /// Code on the command line.
    Code(&'a [u8]),
    /// A module by its name.
    Module(&'a [u8]),
    /// A class by its name, to be found along the class path.
    Main { class: &'a [u8], class_path: Option<&'a OsStr> },
    /// Nothing: it reads its standard input.
    Nothing,
}

/// How an interpreter's own options look.
pub(super) struct Interpreter {
    /// Its names without version.
    names: &'static [&'static str],
    /// Single-letter options are clustered (`-lane`); otherwise `-word` is one option.
    clusters: bool,
    /// Options followed by code.
    code: &'static [&'static str],
    /// Options followed by a module's name.
    module: &'static [&'static str],
    /// Options followed by the script or archive.
    script: &'static [&'static str],
    /// Other options followed by a value.
    valued: &'static [&'static str],
    /// Options whose value is attached, so that it ends a cluster.
    attached: &'static [&'static str],
    /// The word that is no option is code when one of the code options stood before it (shells), a
    /// class (java), or a script (all others).
    word: Word,
}

#[derive(PartialEq)]
enum Word {
    Script,
    CodeAfterOption,
    Class,
}

const TABLE: [Interpreter; 8] = [
    Interpreter {
        names: &["python", "pypy"],
        clusters: true,
        code: &["-c"],
        module: &["-m"],
        script: &[],
        valued: &["-W", "-X", "--check-hash-based-pycs"],
        attached: &[],
        word: Word::Script,
    },
    Interpreter {
        names: &["node", "nodejs"],
        clusters: false,
        code: &["-e", "--eval", "-p", "--print", "-pe"],
        module: &[],
        script: &[],
        valued: &["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"],
        attached: &[],
        word: Word::Script,
    },
    Interpreter {
        names: &["perl"],
        clusters: true,
        code: &["-e", "-E"],
        module: &[],
        script: &[],
        valued: &["-I"],
        attached: &["-i", "-M", "-m", "-F", "-x", "-C", "-D", "-V"],
        word: Word::Script,
    },
    Interpreter {
        names: &["ruby"],
        clusters: true,
        code: &["-e"],
        module: &[],
        script: &[],
        valued: &["-r", "-I", "-C", "-E", "--encoding", "--external-encoding", "--internal-encoding"],
        attached: &["-i", "-F", "-K", "-T", "-W", "-x"],
        word: Word::Script,
    },
    Interpreter {
        names: &["php"],
        clusters: true,
        code: &["-r", "--run"],
        module: &[],
        script: &["-f", "--file"],
        valued: &["-c", "-d", "-z", "-S", "-t", "--php-ini", "--define", "--zend-extension"],
        attached: &[],
        word: Word::Script,
    },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh"],
        clusters: true,
        code: &["-c"],
        module: &[],
        script: &[],
        valued: &["-o", "-O", "--rcfile", "--init-file"],
        attached: &[],
        word: Word::CodeAfterOption,
    },
    Interpreter {
        names: &["java"],
        clusters: false,
        code: &[],
        module: &["-m", "--module"],
        script: &["-jar"],
        valued: &[
            "-p",
            "--module-path",
            "--add-exports",
            "--add-modules",
            "--add-opens",
            "--add-reads",
            "--enable-native-access",
            "--limit-modules",
            "--patch-module",
            "--source",
            "--upgrade-module-path",
        ],
        attached: &[],
        word: Word::Class,
    },
    Interpreter {
        names: &["lua", "luajit"],
        clusters: true,
        code: &["-e"],
        module: &[],
        script: &[],
        valued: &["-l"],
        attached: &[],
        word: Word::Script,
    },
];

/// Options of java that name the class path.
const CLASS_PATH: [&str; 3] = ["-cp", "-classpath", "--class-path"];

/// The interpreter of this name, its version not counted (`python3.11`, `php8.2`).
pub(super) fn named(name: &OsStr) -> Option<&'static Interpreter> {
    let name = name.to_str()?.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    TABLE.iter().find(|i| i.names.contains(&name))
}

impl Interpreter {
    /// What it runs, and how many of the arguments are before that's own.
    pub(super) fn runs<'a>(&self, arguments: &'a [OsString]) -> (Runs<'a>, usize) {
        let mut class_path = None;
        let mut code_follows = false;
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            at += 1;
            let bytes = word.as_bytes();
            if bytes == b"-" || bytes == b"--" || !bytes.starts_with(b"-") {
                let word = if bytes == b"--" { arguments.get(at) } else { Some(word) };
                at += usize::from(bytes == b"--");
                let Some(word) = word.filter(|w| w.as_bytes() != b"-") else { break };
                if self.word == Word::Class && word.as_bytes().starts_with(b"@") {
                    continue;
                }
                return (self.operand(word, code_follows, class_path), at);
            }
            let (option, attached) = self.option(bytes);
            let Some(option) = option else { continue };
            if self.word == Word::CodeAfterOption && self.code.contains(&option) {
                code_follows = true;
                // In `sh -ec`, what follows `c` are further options, none of which takes a value.
                continue;
            }
            let value = match attached {
                Some(_) => attached,
                None => {
                    at += 1;
                    arguments.get(at - 1).map(OsString::as_os_str)
                }
            };
            let Some(value) = value else { break };
            if self.code.contains(&option) {
                return (Runs::Code(value.as_bytes()), at);
            } else if self.module.contains(&option) {
                return (Runs::Module(value.as_bytes()), at);
            } else if self.script.contains(&option) {
                return (Runs::Script(value), at);
            } else if CLASS_PATH.contains(&option) {
                class_path = Some(value);
            }
        }
        (Runs::Nothing, at.min(arguments.len()))
    }

    fn operand<'a>(&self, word: &'a OsStr, code: bool, class_path: Option<&'a OsStr>) -> Runs<'a> {
        match self.word {
            Word::CodeAfterOption if code => Runs::Code(word.as_bytes()),
            // A source file is compiled and run; all else is a class.
            Word::Class if !word.as_bytes().ends_with(b".java") => {
                Runs::Main { class: word.as_bytes(), class_path }
            }
            _ => Runs::Script(word),
        }
    }

    /// The option in this word that takes a value, and the value where it is attached. A cluster
    /// contains at most one, as its last.
    fn option<'a>(&self, word: &'a [u8]) -> (Option<&'static str>, Option<&'a OsStr>) {
        if !self.clusters || word.starts_with(b"--") {
            let mut parts = word.splitn(2, |b| *b == b'=');
            let name = parts.next().unwrap_or_default();
            return (self.takes_value(name), parts.next().map(OsStr::from_bytes));
        }
        for (i, letter) in word.iter().enumerate().skip(1) {
            let rest = word.get(i + 1..).filter(|r| !r.is_empty());
            if let Some(option) = self.takes_value(&[b'-', *letter]) {
                return (Some(option), rest.map(OsStr::from_bytes));
            }
            if self.attached.iter().any(|a| a.as_bytes() == [b'-', *letter]) {
                break;
            }
        }
        (None, None)
    }

    fn takes_value(&self, name: &[u8]) -> Option<&'static str> {
        let class_path: &[&str] = if self.word == Word::Class { &CLASS_PATH } else { &[] };
        let lists = [self.code, self.module, self.script, self.valued, class_path];
        lists.into_iter().flatten().find(|o| o.as_bytes() == name).copied()
    }
}
