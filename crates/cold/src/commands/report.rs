//! `cold report`: what a recording says.

mod compare;
mod page_map;
mod text;
