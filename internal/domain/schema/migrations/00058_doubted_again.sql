-- +goose Up
-- That two candidates are two people can be taken back: whoever said it may have mistyped a reference. Who said what, and when,
-- stays in the timeline.
grant delete on told_apart to usher_app;

-- +goose Down
revoke delete on told_apart from usher_app;
