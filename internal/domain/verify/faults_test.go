package verify_test

// fault is a way in which a promise is broken, or in which somebody has to decide.
type fault struct {
	promise, code string
	says          string // what its sentence names in each language
	attention     bool
	spoil         string // by the owner of the database, whose foreign keys and triggers rest
}

// Parts of the statements: whose claim, and the ids of rows that the house has once.
const (
	atMath = ` where sitting_id = (select id from sitting where reference = 'S001') and candidate_id = (select id from candidate where reference = `
	org    = `(select id from organisation where slug = 'maison')`
	bought = `(select reservation_id from ticket_sold)`
	ofC1   = `(select n.id from notice n join candidate c on c.id = n.candidate_id join claim k on k.id = n.subject_id join sitting s on s.id = k.sitting_id
   where c.reference = 'C1' and s.reference = 'S001')`
	claimC1  = `(select k.id from claim k join sitting s on s.id = k.sitting_id join candidate c on c.id = k.candidate_id where c.reference = 'C1' and s.reference = 'S001')`
	tell     = `update notice set email_state = 'sent', told_at = clock(); `
	delivers = `insert into delivery (organisation_id, notice_id, channel, request, attempt, state, address, message_key, words, lease_until, handed_at, ended_at) select `
	theRun   = `(select id from run where task = 'convoke')`
	aWindow  = `insert into run (organisation_id, task, window_key, request, actor, zone, state, due_at, window_start, window_end, begun_at, lease_until, finished_at, counters) select 0, 'seal-things', `
)

// byHand writes an amount into a statement that is settled, so that it adds up still.
func byHand(kind string) string {
	return `insert into entry (organisation_id, month, currency, kind, event_id, amount_minor, pieces)
select s.organisation_id, s.month, s.currency, '` + kind + `', e.id, 100, 1 from statement s left join event e on '` + kind + `' like '%commission%';
update statement set net_minor = net_minor + entry_net('` + kind + `', 100)`
}

// copied inserts a claim like another one.
func copied(where, seatNumber, seatLabel string) string {
	return `insert into claim (organisation_id, sitting_id, places, seat_number, seat_label, exam_id, candidate_id, run_id, event_id, reservation_id, line_number)
select organisation_id, sitting_id, places, ` + seatNumber + `, ` + seatLabel + `, exam_id, candidate_id, run_id, event_id, reservation_id, line_number from claim ` + where
}

// beingBuilt leaves an index as it is while pg.AddUnique builds it; only who does so also holds a lock.
const beingBuilt = `create unique index claim_x_usher_building on claim (organisation_id, id);
update pg_index set indisvalid = false where indexrelid = 'claim_x_usher_building'::regclass`

// windowOf inserts a window of the task, of a day so many days ago.
func windowOf(daysAgo, state, counters string) string {
	day := `(clock() at time zone 'UTC')::date - ` + daysAgo
	ended := `clock()`
	if state == "running" {
		ended = `null`
	}
	return aWindow + `(` + day + `)::text, '{}', 'schedule', 'UTC', '` + state + `', (` + day + ` + 1)::timestamp at time zone 'UTC' + interval '1 hour',
(` + day + `)::timestamp at time zone 'UTC', (` + day + ` + 1)::timestamp at time zone 'UTC', clock() - interval '1 hour', clock() - interval '1 hour', ` + ended + `, '` + counters + `'`
}

var faults = []fault{
	{"seat_once", "seat_twice", "C2 Traoré 2 Awa", false, `drop index claim_seat_key; update claim set seat_number = 1, seat_label = '001'` + atMath + `'C2')`},
	{"seated_once", "candidate_twice", "C1 Traoré 1 Awa", false, `drop index claim_candidate_key; ` + copied(atMath+`'C1')`, "null", "null")},
	{"seated_once", "ticket_twice", "", false, `drop index claim_line_key; ` + copied(` where reservation_id = `+bought+` and line_number = 1`, "5", "'A5'")},
	{"sittings_apart", "sittings_overlap", "C1 Traoré 1 Awa", false, `
update sitting s set starts_at = m.starts_at + interval '59 minutes', ends_at = m.ends_at + interval '59 minutes' from sitting m where m.reference = 'S001' and s.reference = 'S002'`},
	{"room_once", "room_twice", "S002", false, `alter table sitting drop constraint sitting_room_free;
update sitting s set room_id = m.room_id, starts_at = m.starts_at, ends_at = m.ends_at from sitting m where m.reference = 'S001' and s.reference = 'S002'`},
	{"places_kept", "sitting_overfull", "S001", false, `insert into claim (organisation_id, sitting_id, places, exam_id, candidate_id)
select k.organisation_id, k.sitting_id, k.places, k.exam_id, c.id from claim k, candidate c where k.id = ` + claimC1 + ` and c.reference = 'C4'`},
	{"places_kept", "seat_beyond", "009", false, `alter table claim drop constraint claim_seat_in_room; update claim set seat_number = 9, seat_label = '009'` + atMath + `'C1')`},
	{"seat_there", "seat_gone", "A1", false, `delete from seat where label = 'A1'`},
	{"seat_there", "seat_blocked", "A1", false, `update seat set blocked = true where label = 'A1'`},
	{"seat_there", "seat_renamed", "Z9", false, `update seat set label = 'Z9' where label = 'A1'`},
	{"events_closed", "event_over_on_sale", "La pièce", false, `update sitting set closed_at = ends_at where reference = 'E1'`},

	{"seated_called", "seated_reversed", "chèque sans provision", true, `set local session_replication_role = origin;
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, reverses_id, reason, actor, kind)
select organisation_id, campaign_id, candidate_id, amount_minor, currency, method, clock(), 'back', id, 'chèque sans provision', 'Fatou', 'reversed' from payment where receipt = 'QC3'`},
	{"seated_called", "seated_unpaid", "C3 Traoré 3 Awa", false, `delete from payment where receipt = 'QC3'; update candidate set paid_minor = 0 where reference = 'C3'`},
	{"seated_called", "seated_status_closed", "C3 Traoré 3 Awa", true, `update candidate set status_id = (select id from status where code = 'rejected') where reference = 'C3'`},
	{"filing_order", "passed_by_run", "C4 Traoré 4 Awa", false, `update timeline set candidate_id = (select id from candidate where reference = 'C5')
 where kind = 'seated' and claim_id = (select id from claim` + atMath + `'C3'));
update claim set candidate_id = (select id from candidate where reference = 'C5')` + atMath + `'C3')`},
	{"filing_order", "passed_by_hand", "C4 Traoré 4 Awa", true, `insert into claim (organisation_id, sitting_id, places, exam_id, candidate_id)
select k.organisation_id, k.sitting_id, k.places, k.exam_id, c.id from claim k, candidate c where k.id = ` + claimC1 + ` and c.reference = 'C5'`},
	{"nobody_left_out", "left_out", "C4 Traoré 4 Awa", false, `delete from refusal where reference = 'C4'`},

	{"timeline_kept", "seat_not_written", "C1 Traoré 1 Awa", false, `delete from timeline where kind = 'seated' and claim_id = ` + claimC1},
	{"timeline_kept", "end_not_written", "C1 Traoré 1 Awa", false, `update claim set released_at = clock(), release_reason = 'x'` + atMath + `'C1')`},
	{"timeline_kept", "end_not_true", "C1 Traoré 1 Awa", false, `insert into timeline (organisation_id, actor, kind, claim_id, facts) select organisation_id, 'x', 'released', id, '{}' from claim` + atMath + `'C1')`},
	{"timeline_kept", "written_of_nothing", "", false, `insert into timeline (organisation_id, actor, kind, claim_id, facts) values (` + org + `, 'x', 'seated', 999999, '{}')`},
	{"reservations_written", "reservation_unwritten", "", false, `delete from timeline where reservation_id = ` + bought},
	{"reservations_written", "written_of_no_reservation", "", false, `insert into timeline (organisation_id, actor, kind, reservation_id, facts) values (` + org + `, 'x', 'x', 999999, '{}')`},

	{"told_as_it_is", "told_otherwise", "C1 Traoré 1 Awa", false, tell + `update sitting set revision = revision + 1 where reference = 'S001'`},
	{"told_as_it_is", "seat_unwritten", "C1 Traoré 1 Awa", false, `delete from notice where id = ` + ofC1},
	{"told_as_it_is", "told_gone", "C1 Traoré 1 Awa", false, tell + `update claim set released_at = clock(), release_reason = 'x'` + atMath + `'C1')`},
	{"told_as_it_is", "change_untold", "C1 Traoré 1 Awa", true, tell + `update sitting set revision = 2 where reference = 'S001';
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select organisation_id, campaign_id, candidate_id, 'change', subject, subject_id, on_date, 2, 'bounced', 'unreachable' from notice where id = ` + ofC1},
	{"told_as_it_is", "seat_untold", "C1 Traoré 1 Awa", true, `update notice set email_state = 'failed' where id = ` + ofC1},
	{"told_as_it_is", "end_untold", "C1 Traoré 1 Awa", true, tell + `update claim set released_at = clock(), release_reason = 'x'` + atMath + `'C1');
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select organisation_id, campaign_id, candidate_id, 'release', subject, subject_id, on_date, 1, 'unknown', 'unreachable' from notice where id = ` + ofC1},
	{"told_once", "notice_twice", "", false, `alter table notice drop constraint notice_once;
insert into notice (organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, email_state, sms_state)
select organisation_id, campaign_id, candidate_id, kind, subject, subject_id, on_date, revision, 'pending', 'unreachable' from notice where id = ` + ofC1},
	{"told_once", "message_twice", "c1@example.org", false, delivers + `organisation_id, id, 'email', 1, n, 'sent', 'c1@example.org', 'key ' || n, '', clock(), clock(), clock()
  from notice, generate_series(1, 2) n where id = ` + ofC1},
	{"told_once", "told_after", "S001", false, delivers + `organisation_id, id, 'email', 1, 1, 'sent', 'c1@example.org', 'key', '', clock(), clock() + interval '40 days', clock()
  from notice where id = ` + ofC1},
	{"telling_goes_on", "notice_stuck", "", false, `update notice set email_state = 'sending' where id = ` + ofC1},
	{"telling_goes_on", "messages_abandoned", "", true, `update notice set email_state = 'sending' where id = ` + ofC1 + `; ` + delivers + `
organisation_id, id, 'email', 1, 1, 'sending', 'c1@example.org', 'key', '', clock() - interval '2 hours', null, null from notice where id = ` + ofC1},
	{"telling_goes_on", "messages_wait", "5", true, `update notice set created_at = clock() - interval '2 days' where subject = 'claim'`},

	{"money_owned", "money_wrong", "", false, `delete from payment where reservation_id is not null`},
	{"money_owned", "money_nobodys", "", false, `insert into payment (organisation_id, amount_minor, currency, method, received_at, idempotency_key, actor, gateway_id)
select organisation_id, 500, 'XOF', 'cash', clock(), 'stray', 'x', id from gateway`},
	{"money_owned", "money_exception", "", true, `
insert into gateway_notice (organisation_id, gateway_id, key, kind, amount_minor, currency, occurred_at, body, state, reason)
select organisation_id, id, 'k', 'paid', 500, 'XOF', clock(), '{}', 'exception', 'order_unknown' from gateway`},
	{"money_owned", "refund_failed", "", true, `insert into refund (organisation_id, payment_id, reservation_id, amount_minor, currency, reason, key, state)
select organisation_id, id, reservation_id, 1, currency, 'ticket_cancelled', 'k', 'failed' from payment where reservation_id is not null`},
	{"paid_kept", "paid_differs", "C1 Traoré 1 Awa", false, `update candidate set paid_minor = paid_minor + 1 where reference = 'C1'`},
	{"paid_kept", "reversed_twice", "QC1", false, `drop index payment_reversal_key;
insert into payment (organisation_id, campaign_id, candidate_id, amount_minor, currency, method, received_at, idempotency_key, reverses_id, actor, kind)
select organisation_id, campaign_id, candidate_id, amount_minor, currency, method, clock(), 'back ' || n, id, 'x', 'reversed' from payment, generate_series(1, 2) n where receipt = 'QC1'`},
	{"tickets_seated", "ticket_unseated", "A1", false, `update claim set released_at = clock(), release_reason = 'x' where reservation_id = ` + bought + ` and seat_label = 'A1'`},
	{"let_in_once", "let_in_twice", "C1", false, `drop index scan_in_candidate;
insert into scan (organisation_id, device, nonce, asked_digest, code_kind, sitting_id, claim_id, candidate_id, scanned_at, received_at, counts_at, offline, let_in, verdict, actor, facts)
select organisation_id, 'door', n::text, '', 'signed', sitting_id, id, candidate_id, clock(), clock(), clock(), false, true, 'in', 'x', '{}' from claim, generate_series(1, 2) n where id = ` + claimC1},

	{"months_add_up", "month_twice", "XOF", false, `alter table statement drop constraint statement_pkey cascade; alter table statement drop constraint statement_chain;
insert into statement (organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor)
select organisation_id, month, currency, time_zone, from_at, until_at, carried_minor, net_minor from statement`},
	{"months_add_up", "month_unbalanced", "", false, `update statement set net_minor = net_minor + 1`},
	{"months_add_up", "month_unchained", "XOF", false, `update statement set from_at = until_at - interval '1 day'`},
	{"months_whole", "sale_in_no_month", "", false, `update ticket_sold set price_minor = price_minor + 1`},
	{"months_whole", "money_in_no_month", "", false, `update payment set amount_minor = amount_minor + 1 where reservation_id is not null`},
	{"months_whole", "entry_differs", "", false, byHand("commission")},
	{"months_whole", "entry_differs", "", false, byHand("commission_back")},
	{"months_whole", "entry_differs", "", false, byHand("ticket_refunded")},
	{"months_whole", "entry_differs", "", false, byHand("ticket_charged_back")},
	{"months_whole", "entry_differs", "", false, byHand("spared")},
	{"months_whole", "entry_differs", "", false, byHand("dispute_fee")},
	{"months_whole", "entry_differs", "", false, byHand("correction")},
	{"months_whole", "sale_unwritten", "", false, `delete from ticket_sold`},
	{"months_whole", "month_unsettled", "", true, `delete from entry; delete from statement`},

	{"events_in_order", "subject_twice", "candidate concours C1", false, `drop index dispatch_under_way; update dispatch set state = 'sending' where subject = 'candidate concours C1'`},
	{"events_in_order", "event_overtaken", "candidate concours C1", false, `
update dispatch set attempts = 1, first_attempt_at = clock() - interval '1 hour' where id = (select min(id) from dispatch where subject = 'candidate concours C1');
update dispatch set state = 'delivered', ended_at = clock(), last_attempt_at = clock() where id = (select max(id) from dispatch where subject = 'candidate concours C1')`},
	{"events_in_order", "events_dead", "crm", true, `update dispatch set state = 'dead', ended_at = clock()`},
	{"events_in_order", "events_wait", "crm", true, `update dispatch set written_at = clock() - interval '2 days'`},
	{"events_written", "event_unwritten", "C2 Traoré 2 Awa", false, `delete from dispatch where subject = 'candidate concours C2'`},

	{"windows_once", "window_twice", sealTask, false, `alter table run drop constraint run_window_key; ` + windowOf("3", "done", "{}") + ` from generate_series(1, 2)`},
	{"windows_once", "window_missing", sealTask, false, `insert into schedule (task, zone, planned_until) values ('seal-things', 'UTC', clock()); ` +
		windowOf("5", "done", "{}") + `; ` + windowOf("3", "done", "{}")},
	{"windows_once", "window_open", sealTask, true, windowOf("3", "running", "{}") + `; insert into schedule (task, zone, planned_until) values ('seal-things', 'UTC', clock())`},
	{"windows_once", "window_failed", sealTask, true, windowOf("3", "failed", "{}") + `; insert into schedule (task, zone, planned_until) values ('seal-things', 'UTC', clock())`},
	{"windows_once", "window_partial", sealTask, true, windowOf("3", "done", `{"refused": 1}`) + `; insert into schedule (task, zone, planned_until) values ('seal-things', 'UTC', clock())`},
	{"windows_once", "window_missed", sealTask, true, `insert into schedule (task, zone, planned_until, missed, missed_at) values ('seal-things', 'UTC', clock(), 1, clock());
insert into missed_window (task, window_key, zone, due_at) values ('seal-things', '2026-01-01', 'UTC', '2026-01-02')`},
	{"windows_once", "windows_unplanned", sealTask, true, `insert into schedule (task, zone, planned_until) values ('seal-things', 'UTC', clock() - interval '3 days')`},
	{"runs_end", "run_interrupted", "concours", true, `update run set state = 'running', finished_at = null, lease_until = clock() - interval '1 hour' where id = ` + theRun},

	{"timeline_sealed", "seal_broken", "", false, `update timeline set actor = 'somebody else' where at < (clock() at time zone 'UTC')::date`},
	{"timeline_sealed", "seals_aside", "", true, `insert into timeline_seal_aside (organisation_id, digest, day, first_day, rows, rows_digest, mixture, sealed_at)
select organisation_id, digest, day + 5, day + 5, rows, rows_digest, mixture, sealed_at from timeline_seal`},
	{"organisations_apart", "table_not_fenced", "claim", false, `alter table claim disable row level security`},
	{"guards_there", "guard_missing", "claim_seat_key", false, `drop index claim_seat_key`},
	{"guards_there", "guard_idle", "payment", false, `alter table payment disable trigger payment_keeps_paid_minor`},
	{"guards_there", "guard_left", "claim_x_usher_building", true, beingBuilt},
	{"guards_there", "guard_building", "claim_x_usher_building", true, beingBuilt + `; select pg_advisory_xact_lock('pg_class'::regclass::oid::int, 'claim'::regclass::oid::int)`},
}
