package notice

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"usher/internal/base/mail"
	"usher/internal/base/pg"
	"usher/internal/base/sms"
	"usher/internal/domain/schema"
	"usher/internal/domain/testdb"
)

// A process that is to die is this program again, told by its environment where.
const (
	crashURL  = "USHER_TEST_CRASH_URL"
	crashPost = "USHER_TEST_CRASH_POST"
	crashAt   = "USHER_TEST_CRASH_AT" // how many steps it passes before
)

func TestMain(m *testing.M) {
	if os.Getenv(crashURL) != "" {
		fmt.Fprintln(os.Stderr, drainAndDie())
		os.Exit(3)
	}
	testdb.Main(m)
}

// drainAndDie drains and kills its own process at a step; it returns only when that failed.
func drainAndDie() error {
	at, err := strconv.Atoi(os.Getenv(crashAt))
	if err != nil {
		return err
	}
	db, err := pg.Open(context.Background(), os.Getenv(crashURL), schema.Migrations())
	if err != nil {
		return err
	}
	channel, carrier, err := crashCarrier(os.Getenv(crashPost))
	if err != nil {
		return err
	}
	var passed stepCount
	d := &Drainer{
		Channel: channel, Carrier: carrier, Definitions: definitions(), Holder: "crash",
		step: func(string) {
			if passed.next() > at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	}
	_, _, err = d.Drain(context.Background(), db)
	return fmt.Errorf("the process was not killed: %w", err)
}

// crashCarrier carries to the server or the gateway of the test.
func crashCarrier(address string) (Channel, Carrier, error) {
	if strings.HasPrefix(address, "smtp") {
		server, err := mail.ParseURL(address)
		return ChannelEmail, &Post{Server: server, From: "convocations@ecole.example"}, err
	}
	gateway, err := sms.ParseURL(address)
	return ChannelSMS, Texts{Gateway: gateway}, err
}
