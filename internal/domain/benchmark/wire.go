package benchmark

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// wire is a network between one process and the database that can be cut: from then on nothing arrives at either end, and neither
// learns of it, as when a cable is pulled or a firewall forgets.
type wire struct {
	listener        net.Listener
	network, server string
	cutting         sync.Once
	isCut           chan struct{}
	over            context.Context
}

// newWire lasts until ctx ends; databaseURL is that of the database behind it, through is how its process reaches it.
func newWire(ctx context.Context, databaseURL string) (w *wire, through string, err error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, "", fmt.Errorf("read the address of the database: %w", err)
	}
	w = &wire{isCut: make(chan struct{}), over: ctx}
	w.network, w.server = pgconn.NetworkAddress(config.Host, config.Port)
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", fmt.Errorf("lay a network to cut: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = w.listener.Close() })
	go w.accept()
	port := w.listener.Addr().(*net.TCPAddr).Port
	parsed, err := url.Parse(databaseURL)
	if err != nil || parsed.Scheme == "" {
		return w, databaseURL + " host=127.0.0.1 port=" + strconv.Itoa(port), nil
	}
	query := parsed.Query()
	query.Del("host")
	query.Del("port")
	parsed.RawQuery, parsed.Host = query.Encode(), w.listener.Addr().String()
	return w, parsed.String(), nil
}

func (w *wire) cut() { w.cutting.Do(func() { close(w.isCut) }) }

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return // it is over
		}
		context.AfterFunc(w.over, func() { _ = near.Close() })
		far, err := (&net.Dialer{}).DialContext(w.over, w.network, w.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		context.AfterFunc(w.over, func() { _ = far.Close() })
		go w.carry(far, near)
		go w.carry(near, far)
	}
}

// carry moves what is said from one end to the other, until one of them ends.
func (w *wire) carry(to, from net.Conn) {
	bytes := make([]byte, 32<<10)
	for {
		n, err := from.Read(bytes)
		select {
		case <-w.isCut:
			<-w.over.Done()
			return
		default:
		}
		if n > 0 {
			if _, failed := to.Write(bytes[:n]); failed != nil {
				err = io.ErrClosedPipe
			}
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}
