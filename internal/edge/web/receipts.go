package web

import (
	"errors"
	"net/http"

	"usher/internal/base/sms"
	"usher/internal/domain/notice"
)

// SMSReceipts is the path at which the gateway says what became of an SMS.
const SMSReceipts = "/hooks/sms"

// smsReceipt takes a receipt of the gateway. Its signature is its login; a receipt that says nothing
// new, or comes again, changes nothing and is answered like the first.
func (s *site) smsReceipt(w http.ResponseWriter, r *http.Request) {
	if s.gateway == nil {
		http.NotFound(w, r)
		return
	}
	address := ""
	if s.publicURL != nil {
		address = s.publicURL.String() + r.URL.RequestURI()
	}
	receipt, err := s.gateway.ParseCallback(r, address)
	if errors.Is(err, sms.ErrNotGenuine) {
		http.Error(w, "the signature is not the gateway's", http.StatusForbidden)
		return
	}
	if err != nil {
		http.Error(w, "the receipt cannot be read", http.StatusBadRequest)
		return
	}
	known := true
	if receipt.State != sms.ReceiptNoNews {
		known, err = notice.Receive(r.Context(), s.db, notice.ChannelSMS, notice.Receipt{
			MessageKey: messageOf(r, receipt), GatewayKey: receipt.GatewayID,
			Arrived: receipt.State == sms.ReceiptDelivered, Words: receipt.Words,
		})
	}
	if err != nil { // the gateway comes again
		logIncident(r, newIncident(), "a receipt could not be kept", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	}
	if !known {
		http.Error(w, "nothing was sent from here that this receipt speaks of", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// messageOf is the key of the message that a receipt names: in its signed body, or in the address
// that we gave, where the signature covers it.
func messageOf(r *http.Request, receipt sms.Receipt) string {
	if receipt.Key != "" || !receipt.AddressSigned {
		return receipt.Key
	}
	return r.URL.Query().Get(notice.MessageInCallback)
}
