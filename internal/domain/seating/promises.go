package seating

import (
	_ "embed"

	"usher/internal/domain/promise"
)

//go:embed promises.sql
var promisesSQL string

// Promises are what holds of seats at any moment: one seat, one person.
func Promises() []promise.Promise {
	of := promise.Read(promisesSQL)
	return []promise.Promise{
		{Name: "seat_once", Statement: of["seat_once"], Guards: []promise.Guard{
			{Name: "claim_seat_key", Over: "claim (organisation_id, sitting_id, seat_number) WHERE ((seat_number IS NOT NULL) AND (released_at IS NULL))"},
		}},
		{Name: "seated_once", Statement: of["seated_once"], Guards: []promise.Guard{
			{Name: "claim_candidate_key", Over: "claim (organisation_id, candidate_id, exam_id) WHERE ((candidate_id IS NOT NULL) AND (released_at IS NULL))"},
			{Name: "claim_line_key", Over: "claim (organisation_id, reservation_id, line_number) WHERE ((reservation_id IS NOT NULL) AND (released_at IS NULL))"},
		}},
		{Name: "sittings_apart", Statement: of["sittings_apart"]},
		{Name: "room_once", Statement: of["room_once"], Guards: []promise.Guard{
			{Name: "sitting_room_free", Over: "sitting EXCLUDE USING gist (organisation_id WITH =, room_id WITH =, tstzrange(starts_at, ends_at) WITH &&) WHERE ((cancelled_at IS NULL))"},
		}},
		{Name: "places_kept", Statement: of["places_kept"], Guards: []promise.Guard{
			{Name: "claim_seat_in_room", Over: "claim CHECK ((((seat_number >= 1) AND (seat_number <= places)) OR (released_at IS NOT NULL)))"},
			{Name: "claim_places_fkey", Over: "claim FOREIGN KEY (organisation_id, sitting_id, places) REFERENCES sitting(organisation_id, id, places) ON UPDATE CASCADE"},
		}},
		{Name: "seat_there", Statement: of["seat_there"]},
	}
}
