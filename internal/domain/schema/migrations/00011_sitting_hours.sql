-- +goose Up
-- A sitting of more than a day is a wrong date, whoever writes it. Sittings that were written before
-- are not looked at: a move mends them.
alter table sitting add constraint sitting_hours_believed check (ends_at - starts_at <= interval '24 hours') not valid;

-- An exam lasts no longer than a sitting.
alter table exam add constraint exam_duration_believed check (duration_minutes <= 24 * 60) not valid;
