package seating_test

import (
	"testing"

	"usher/internal/domain/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }
