package cli

import (
	"fmt"
	"net/url"
	"path/filepath"

	"usher/internal/base/mail"
	"usher/internal/base/problem"
	"usher/internal/base/sms"
	"usher/internal/domain/notice"
	"usher/internal/edge/job"
	"usher/internal/edge/web"
)

// channelFlags say how people are told. Addresses of servers hold passwords, which a command line
// shows to everybody on the machine: they are better given in the environment.
type channelFlags struct {
	MailServer    string  `env:"USHER_MAIL_SERVER" placeholder:"URL" help:"Server that takes e-mail: smtp://user:password@host:587 or smtps://…"`
	MailFrom      string  `env:"USHER_MAIL_FROM" placeholder:"ADDRESS" help:"E-mail address that messages come from."`
	MailPerMinute float64 `env:"USHER_MAIL_PER_MINUTE" placeholder:"N" help:"E-mails a minute at most; else as fast as the server takes them."`
	SMSGateway    string  `name:"sms-gateway" env:"USHER_SMS_GATEWAY" placeholder:"URL" help:"Gateway that takes SMS: twilio://SID:TOKEN@api.twilio.com?from=%2B223… or https://TOKEN@host/path."`
	SMSPerMinute  float64 `name:"sms-per-minute" env:"USHER_SMS_PER_MINUTE" placeholder:"N" help:"SMS a minute at most; else as fast as the gateway takes them."`
	Bounces       string  `env:"USHER_BOUNCES" placeholder:"URL" help:"Mailbox to which undeliverable e-mail comes back: imaps://user:password@host/INBOX."`
	Outbox        string  `env:"USHER_OUTBOX" placeholder:"DIR" help:"Folder that messages are written to, on a channel that has no server."`
}

// outboxFrom is the sender of e-mail that is only written to a folder.
const outboxFrom = "convocations@usher.invalid"

// channels reads the flags. Nothing is connected yet: a server that is down is no bad use. Receipts
// of SMS come to the public address, where there is one.
func (f channelFlags) channels(public *url.URL) (job.Channels, error) {
	channels := job.Channels{EmailsPerMinute: f.MailPerMinute, SMSPerMinute: f.SMSPerMinute}
	for flag, limit := range map[string]float64{"--mail-per-minute": f.MailPerMinute, "--sms-per-minute": f.SMSPerMinute} {
		if limit < 0 {
			return channels, problem.Invalid("limit_negative", problem.Facts{"flag": flag})
		}
	}
	if public != nil {
		channels.Public = public.String()
	}
	if err := f.mail(&channels); err != nil {
		return channels, err
	}
	if err := f.sms(&channels, public); err != nil {
		return channels, err
	}
	if f.Bounces != "" {
		mailbox, err := mail.ParseMailbox(f.Bounces)
		if err != nil {
			return channels, err
		}
		channels.Bounces = &mailbox
	}
	return channels, nil
}

func (f channelFlags) mail(channels *job.Channels) error {
	from := f.MailFrom
	switch {
	case f.MailServer != "" && from == "":
		return problem.Invalid("mail_from_missing", nil)
	case from == "":
		from = outboxFrom
	}
	if err := mail.CheckAddress(from); err != nil {
		return err
	}
	if f.MailServer != "" {
		server, err := mail.ParseURL(f.MailServer)
		if err != nil {
			return err
		}
		channels.Mail = func() notice.Carrier { return &notice.Post{Server: server, From: from} }
		return nil
	}
	if f.Outbox != "" {
		folder := mail.Folder(filepath.Join(f.Outbox, "email"))
		channels.Mail = func() notice.Carrier { return notice.MailFolder{Folder: folder, From: from} }
	}
	return nil
}

func (f channelFlags) sms(channels *job.Channels, public *url.URL) (err error) {
	if f.SMSGateway != "" {
		if channels.Gateway, err = sms.ParseURL(f.SMSGateway); err != nil {
			return err
		}
		carrier := notice.Texts{Gateway: channels.Gateway}
		if public != nil {
			carrier.Callback = public.String() + web.SMSReceipts
		}
		channels.SMS = func() notice.Carrier { return carrier }
		return nil
	}
	if f.Outbox != "" {
		folder := sms.Folder(filepath.Join(f.Outbox, "sms"))
		channels.SMS = func() notice.Carrier { return notice.TextFolder{Folder: folder} }
	}
	return nil
}

// sayChannels tells where messages go, and which of them wait because nothing takes them.
func (s *session) sayChannels(f channelFlags) {
	for _, channel := range []struct{ id, server string }{{"email", f.MailServer}, {"sms", f.SMSGateway}} {
		sentence := "cli_channel_" + channel.id + "_none"
		switch {
		case channel.server != "":
			continue
		case f.Outbox != "":
			sentence = "cli_channel_" + channel.id + "_outbox"
		}
		fmt.Fprintln(s.stderr, s.voice.Say(sentence, map[string]any{"folder": filepath.Join(f.Outbox, channel.id)}))
	}
}
