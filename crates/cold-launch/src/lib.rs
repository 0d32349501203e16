//! Replays a plan, then becomes the program: small, static, harmless.
