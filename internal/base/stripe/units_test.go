package stripe_test

import (
	"errors"
	"testing"

	"usher/internal/base/stripe"
)

func TestToUnits(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		minor int64
		code  string
		units int64
		err   error
	}{
		{5000, "XOF", 5000, nil},
		{80, "JPY", 80, nil},
		{2000, "EUR", 2000, nil},
		{12_500, "TND", 12_500, nil},
		{12_505, "TND", 0, stripe.ErrUnit},
		{5, "ISK", 500, nil},
		{5, "UGX", 500, nil},
		{1000, "MGA", 10, nil},
		{1050, "MGA", 0, stripe.ErrUnit},
		{1, "HUF", 1, nil},
		{1, "XXL", 0, stripe.ErrCurrency},
	} {
		units, err := stripe.ToUnits(at.minor, at.code)
		if units != at.units || !errors.Is(err, at.err) {
			t.Errorf("%d %s: got %d, %v; want %d, %v", at.minor, at.code, units, err, at.units, at.err)
		}
		if at.err != nil {
			continue
		}
		if back, err := stripe.FromUnits(units, at.code); back != at.minor || err != nil {
			t.Errorf("%d %s came back as %d, %v", at.minor, at.code, back, err)
		}
	}
	if _, err := stripe.FromUnits(550, "ISK"); !errors.Is(err, stripe.ErrUnit) {
		t.Errorf("half a króna: got %v", err)
	}
}
