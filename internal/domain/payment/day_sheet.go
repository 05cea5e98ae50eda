package payment

import (
	"time"

	"usher/internal/base/i18n"
	"usher/internal/base/sheet"
	"usher/internal/domain/account"
)

// LineTitles are the sentences over the columns of a day that is exported.
func LineTitles() []string {
	return []string{
		"day_column_at", "day_column_receipt", "day_column_cashier", "receipt_reference", "day_column_name", "day_column_campaign", "receipt_method",
		"day_column_amount", "day_column_minor", "day_column_currency", "receipt_reverses", "receipt_reason",
	}
}

// Cells are a line of it, in the order of LineTitles: amounts as they are read, and in minor units, to count with.
func (l Line) Cells(v i18n.Voice, zone string) []sheet.Value {
	return []sheet.Value{
		sheet.Text(i18n.In(i18n.Instant{At: l.RecordedAt, Zone: zone}).Format(time.DateTime)), sheet.Text(l.Receipt),
		sheet.Text(account.ActorWords(v, l.Cashier)), sheet.Text(l.Candidate), sheet.Text(l.Name), sheet.Text(l.Campaign),
		sheet.Text(MethodWords(v, l.Method)), sheet.Text(v.Money(i18n.Money{Minor: l.AmountMinor, Currency: l.Currency})),
		sheet.Integer(l.AmountMinor), sheet.Text(l.Currency), sheet.Text(l.Reverses), sheet.Text(l.Reason),
	}
}
