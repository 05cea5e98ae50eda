package sample_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"usher/internal/domain/sample"
)

// What is sold fits where it is sold, the event that is said to be sold out is, and dates follow the day alone.
func TestKelenya_SellsWhatThereIs(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 30, 17, 4, 0, 0, time.UTC)
	house := sample.Kelenya(day)
	seats := map[string]int{}
	for _, hall := range house.Halls {
		seats[hall.Name] = len(hall.Rows)*hall.Seats - len(hall.Blocked)
		var file bytes.Buffer
		if err := hall.WritePlan(&file); err != nil || !json.Valid(file.Bytes()) {
			t.Errorf("the plan of %s: %v", hall.Name, err)
		}
	}
	receipts := map[string]bool{}
	for _, show := range append(house.Shows, house.Past) {
		past := show.Slug == house.Past.Slug
		sold := map[string]int{}
		for _, sale := range show.Sold {
			sold[sale.Night] += sale.Tickets
			if receipts[sale.Receipt] {
				t.Errorf("the receipt %s is given twice", sale.Receipt)
			}
			receipts[sale.Receipt] = true
		}
		for _, night := range show.Nights {
			if sold[night.Reference] > seats[show.Hall] || night.EndsAt.Before(day) != past || !night.EndsAt.After(night.StartsAt) {
				t.Errorf("%s, %s: %d of %d sold, from %s to %s", show.Slug, night.Reference, sold[night.Reference], seats[show.Hall], night.StartsAt, night.EndsAt)
			}
		}
		if show.Slug == "nuit-du-bogolan" && sold["S001"] != seats[show.Hall] {
			t.Errorf("%d of %d are sold", sold["S001"], seats[show.Hall])
		}
	}
}
