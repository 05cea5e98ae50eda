package stripe

import (
	"errors"
	"strconv"
	"strings"

	"github.com/bojanz/currency"
)

// Stripe counts in the smallest unit of a currency, with exceptions of its own (https://docs.stripe.com/currencies).
const (
	// No decimals. MGA has two in ISO 4217 and none at Stripe.
	withoutDecimals = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF"
	// No decimals any more, and written with two that must be zero: 5 UGX are 500 (https://docs.stripe.com/currencies#special-cases).
	// UGX stands in Stripe's list of those without decimals, too, and its API does not follow that: what is no multiple of 100 it
	// refuses ("effectively zero-decimal and charged amounts must be evenly divisible by 100"), and of 100 it makes 1.00.
	withTwoZeros = "ISK UGX"
	// Three decimals, of which the last must be zero.
	withThree = "BHD IQD JOD KWD LYD OMR TND"
)

// ErrUnit says that Stripe cannot take an amount: one that is finer than its unit of the currency.
var ErrUnit = errors.New("the amount is finer than Stripe takes")

// ErrCurrency says that the currency is none that is known here.
var ErrCurrency = errors.New("the currency is not known")

// factors are by what minor units of ISO 4217 are multiplied and divided to be Stripe's, and of what those must be a multiple.
func factors(code string) (times, by, multiple int64, err error) {
	digits, known := currency.GetDigits(code)
	if !known {
		return 0, 0, 0, ErrCurrency
	}
	theirs, multiple := 2, int64(1)
	switch {
	case strings.Contains(withoutDecimals, code):
		theirs = 0
	case strings.Contains(withTwoZeros, code):
		multiple = 100
	case strings.Contains(withThree, code):
		theirs, multiple = 3, 10
	}
	times, by = 1, 1
	for own := int(digits); own < theirs; own++ {
		times *= 10
	}
	for own := int(digits); own > theirs; own-- {
		by *= 10
	}
	return times, by, multiple, nil
}

// ToUnits gives an amount in minor units of ISO 4217 as Stripe counts it. One that Stripe could only take rounded is ErrUnit:
// what is asked for is what it costs, or nothing.
func ToUnits(minor int64, code string) (int64, error) {
	times, by, multiple, err := factors(code)
	if err != nil {
		return 0, err
	}
	if minor%by != 0 || minor/by*times%multiple != 0 {
		return 0, ErrUnit
	}
	return minor / by * times, nil
}

// FromUnits gives an amount of Stripe's in minor units of ISO 4217.
func FromUnits(units int64, code string) (int64, error) {
	times, by, _, err := factors(code)
	if err != nil {
		return 0, err
	}
	if units%times != 0 {
		return 0, ErrUnit
	}
	return units / times * by, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
