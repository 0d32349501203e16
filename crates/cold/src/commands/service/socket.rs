//! Questions to a running service: one line of JSON there, one document back, then the end.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_model::Shown as _;
use cold_sys::remove::Entry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::Failure;

/// Bytes of the longest question that is read.
const LONGEST: u64 = 16 << 10;
/// Bytes of the longest answer that is read.
const ANSWER: u64 = 64 << 20;
/// Who asks or answers for longer has hung.
const PATIENCE: Duration = Duration::from_secs(10);

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Question {
    Status,
    Pause,
    Resume,
    /// Of this program, as paths are written for programs; of all without.
    Forget {
        program: Option<String>,
    },
}

/// The service's ear. The socket goes with it.
#[derive(Debug)]
pub(crate) struct Ear {
    path: PathBuf,
}

impl Ear {
    /// Answers in a thread until the process ends. The caller holds the service's lock, so a socket that lies there
    /// is of a service that was killed.
    pub(crate) fn open(
        path: &Path,
        answer: impl Fn(&Question) -> Value + Send + 'static,
    ) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| anyhow::anyhow!("cannot listen at {}: {e}", path.shown());
        remove(path).map_err(failed)?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        let thread = std::thread::Builder::new().name("answers".into()).stack_size(1 << 20);
        thread
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Who asks wrongly, or has gone, is no reason to stop answering others.
                    let _ = one(&stream, &answer);
                }
            })
            .map_err(failed)?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// Removes a socket of a service before. Anything else of that name stays, and binding fails.
fn remove(path: &Path) -> std::io::Result<()> {
    let entry = Entry::find(path)?.filter(|entry| entry.meta().file_type().is_socket());
    entry.map_or(Ok(()), |entry| entry.unlink().map(drop))
}

fn one(mut stream: &UnixStream, answer: &impl Fn(&Question) -> Value) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let said = match serde_json::from_str(&line) {
        Ok(question) => answer(&question),
        Err(e) => serde_json::json!({ "error": format!("no question: {e}") }),
    };
    stream.write_all(said.to_string().as_bytes())
}

/// Asks the service; `None` when none runs here.
pub(crate) fn ask(path: &Path, question: &Question) -> Result<Option<Value>, Failure> {
    let failed = |e: std::io::Error| anyhow::anyhow!("cannot ask the service at {}: {e}", path.shown());
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => return Ok(None),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            return Err(Failure::from(failed(e)).hint("only root may: the history tells which programs ran"));
        }
        Err(e) => return Err(failed(e).into()),
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let line = serde_json::to_string(question)? + "\n";
    stream.write_all(line.as_bytes()).map_err(failed)?;
    let mut text = String::new();
    stream.take(ANSWER).read_to_string(&mut text).map_err(failed)?;
    let answer: Value = serde_json::from_str(&text)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(why) => Err(anyhow::anyhow!("the service refused: {why}").into()),
        None => Ok(Some(answer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_nonsense_refused_and_a_dead_socket_nobody() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        assert!(ask(&path, &Question::Status).expect("no error").is_none(), "none there");
        let ear = Ear::open(&path, |q| serde_json::json!({ "was": format!("{q:?}") })).expect("listens");
        let said =
            ask(&path, &Question::Forget { program: Some("x".into()) }).expect("asked").expect("answered");
        assert!(
            said["was"].as_str().is_some_and(|was| was.contains("Forget") && was.contains("\"x\"")),
            "{said}"
        );
        let mut stream = UnixStream::connect(&path).expect("connects");
        stream.write_all(b"{}\n").expect("written");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("answered");
        assert!(text.contains("error"), "{text}");
        drop(ear);
        assert!(!path.exists());
        drop(UnixListener::bind(&path).expect("bound"));
        assert!(ask(&path, &Question::Status).expect("no error").is_none(), "killed before");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "mine").expect("written");
        assert!(Ear::open(&path, |_| Value::Null).is_err(), "somebody's file");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "mine");
    }
}
