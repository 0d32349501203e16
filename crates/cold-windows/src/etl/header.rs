//! The first event: `TRACE_LOGFILE_HEADER` of `evntrace.h`.

use super::utf16;
use crate::bytes::Input;
use crate::{Error, Result};

const WHAT: &str = "the log file's header";

/// What event times count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Ticks of the performance counter.
    Counter,
    /// 100 ns since 1601, UTC.
    System,
    /// Cycles of the CPU.
    Cycles,
}

/// What a trace says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHeader {
    /// Build of Windows.
    pub build: u32,
    /// Processors of the machine.
    pub processors: u32,
    /// Bytes of a pointer in the kernel's events: 4 or 8.
    pub pointer: u8,
    /// Events that the session lost.
    pub events_lost: u32,
    /// Buffers that the session lost.
    pub buffers_lost: u32,
    /// Nominal speed of the CPU, MHz.
    pub cpu_mhz: u32,
    /// What event times count.
    pub clock: Clock,
    /// Ticks of the performance counter in a second.
    pub counter_hz: u64,
    /// Local time is UTC less this, minutes (`TIME_ZONE_INFORMATION.Bias`).
    pub bias_minutes: i32,
    /// When the session began, 100 ns since 1601, UTC.
    pub started: u64,
    /// When it ended; 0 where the session did not end in order.
    pub ended: u64,
    /// When the machine was booted.
    pub booted: u64,
    /// Name of the session.
    pub logger: String,
}

impl LogHeader {
    /// Reads the payload of the event with hook 0.
    ///
    /// # Errors
    /// [`Error::Short`], or [`Error::Damaged`] for a pointer size that is neither 4 nor 8 and a clock without speed.
    pub fn read(payload: &[u8]) -> Result<Self> {
        let b = Input::new(payload);
        let damaged = |at, why| Err(Error::Damaged { what: WHAT, at, why });
        let pointer = match b.u32(44, WHAT)? {
            4 => 4,
            8 => 8,
            _ => return damaged(44, "pointers are of neither 4 nor 8 bytes"),
        };
        let zone = 56 + 2 * pointer;
        // TIME_ZONE_INFORMATION has 172 bytes; the 64-bit times behind it are aligned.
        let times = (zone + 172_u64).next_multiple_of(8);
        let clock = match b.u32(times + 24, WHAT)? {
            2 => Clock::System,
            3 => Clock::Cycles,
            _ => Clock::Counter,
        };
        let counter_hz = b.u64(times + 8, WHAT)?;
        let cpu_mhz = b.u32(52, WHAT)?;
        if clock == Clock::Counter && counter_hz == 0 || clock == Clock::Cycles && cpu_mhz == 0 {
            return damaged(times + 8, "its clock has no speed");
        }
        Ok(Self {
            build: b.u32(8, WHAT)?,
            processors: b.u32(12, WHAT)?,
            pointer: pointer as u8,
            events_lost: b.u32(48, WHAT)?,
            buffers_lost: b.u32(times + 28, WHAT)?,
            cpu_mhz,
            clock,
            counter_hz,
            bias_minutes: b.u32(zone, WHAT)?.cast_signed(),
            started: b.u64(times + 16, WHAT)?,
            ended: b.u64(16, WHAT)?,
            booted: b.u64(times, WHAT)?,
            logger: utf16(payload.get(times as usize + 32..).unwrap_or_default()),
        })
    }

    /// `ticks` of the trace's clock in nanoseconds.
    pub fn nanos(&self, ticks: i64) -> i64 {
        let scaled = |per_second: i128| i128::from(ticks) * 1_000_000_000 / per_second.max(1);
        let ns = match self.clock {
            Clock::Counter => scaled(self.counter_hz.into()),
            Clock::System => scaled(10_000_000),
            Clock::Cycles => scaled(i128::from(self.cpu_mhz) * 1_000_000),
        };
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}
