package web

import (
	"errors"
	"io"
	"net/http"

	"usher/internal/base/problem"
	"usher/internal/domain/payment"
	"usher/internal/domain/reservation"
)

// GatewayHooks is the path below which gateways say what became of money; its last part names the gateway.
const GatewayHooks = "/hooks/pay/"

// gatewayHook takes what a gateway sent. Its signature is its login. It is answered 2xx as soon as it is kept, whatever it says:
// a repeat, an order that nobody knows, or a fault of ours in doing what follows, which is in the log and in the list of what a
// person must look at.
func (s *site) gatewayHook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the notice is too long, or it broke off", http.StatusRequestEntityTooLarge)
		return
	}
	kept, err := reservation.Receive(r.Context(), s.db, r.PathValue("hook"), r.Header, body)
	var unreadable *payment.Unreadable
	switch {
	case kept:
		if err != nil {
			logIncident(r, newIncident(), "a notice of a gateway is kept for a person", err)
		}
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, payment.ErrNotGenuine):
		http.Error(w, "the signature is not the gateway's", http.StatusBadRequest)
	case errors.As(err, &unreadable):
		http.Error(w, unreadable.Error(), http.StatusBadRequest)
	case problem.Has(err, "gateway_hook_unknown"):
		http.NotFound(w, r)
	default: // the gateway comes again
		logIncident(r, newIncident(), "a notice of a gateway could not be kept", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}
