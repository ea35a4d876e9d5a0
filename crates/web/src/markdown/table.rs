//! Tables: with header cells they become Markdown tables, otherwise their rows become lines.

use super::elements::Role;
use super::open::Open;
use super::writer::Writer;

/// The most columns in the line below the header.
const MAX_COLUMNS: u64 = 100;

impl Writer {
    pub(super) fn cell(&mut self, open: &mut Open, head: bool) {
        let first = self.stack.last(|role| role == Role::Row).is_none_or(|row| {
            row.count += 1;
            row.count == 1
        });
        let headed = self.stack.last(|role| role == Role::Table).is_some_and(|table| {
            table.headed |= head && first && table.count == 0;
            table.headed
        });
        if !headed {
            self.bar = !first;
            return;
        }
        open.headed = true;
        self.flush();
        self.put(if first { "| " } else { " | " });
        self.cells += 1;
    }

    pub(super) fn row(&mut self, row: &Open) {
        let mut heads = false;
        let headed = self.stack.last(|role| role == Role::Table).is_some_and(|table| {
            table.count += 1;
            heads = table.headed && table.count == 1;
            table.headed
        });
        if headed && row.count > 0 {
            self.put(" |");
        }
        self.space = false;
        self.lines(1);
        if heads {
            self.flush();
            self.put("|");
            for _ in 0..row.count.min(MAX_COLUMNS) {
                self.put(" --- |");
            }
            self.lines(1);
        }
    }
}
