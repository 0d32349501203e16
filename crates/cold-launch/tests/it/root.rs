//! What needs root to be set up: other users, a server that never answers.
