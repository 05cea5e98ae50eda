package mail_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"mime"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"usher/internal/base/mail"
	"usher/internal/base/mail/mailpit"
	"usher/internal/base/mail/smtpfault"
)

// C72: what people are called arrives letter for letter, wherever it stands, and breaks no header.
func TestWrite_NamesArriveLetterForLetter(t *testing.T) {
	t.Parallel()
	server := mailpit.Start(t)
	conn := dial(t, serverAt(t, server.URL()))
	for name, want := range map[string]string{
		`Awa N'Guessan & <Fils>`:                   "",
		`L'été d'Éric – "50 %"`:                    "",
		"Kɔ̀ɔ̀nyɛ́ Ŋɔ́nɛ Ɲɛ́":                      "",
		"عائشة ديالو":                              "",
		"李小龍 👩‍🎓":                                  "",
		"{{.}} {{template}} =?utf-8?q?x?=":         "",
		`Back\slash, "quoted"; (brackets) a@b.c:`:  "",
		"=?UTF-8?B?" + "SGk=" + "?=":               "",
		"Awa\r\nBcc: eve@example.org\r\n\r\nHello": "Awa Bcc: eve@example.org Hello",
		"Awa\u2028Diop\x00\x1b[31m\tMaïga  Bâ":     "Awa Diop [31m Maïga Bâ",
		strings.Repeat("Ɲɛ́ma ", 40) + "fin":       "",
	} {
		if want == "" {
			want = name
		}
		m := messageTo("awa@example.org")
		m.FromName, m.ToName, m.Subject = name, name, "Convocation : "+name
		m.Text = "Bonjour " + name + ",\n.\n..\nFrom now on\n" + strings.Repeat("é", 2000) + "\n"
		m.HTML = "<p>Bonjour</p>\n.\n"
		if o := conn.Send(t.Context(), m); o.State != mail.Sent {
			t.Fatalf("%q: %+v", name, o)
		}
		list := server.List()
		if len(list) != 1 {
			t.Fatalf("%q: %d messages", name, len(list))
		}
		checkHeaders(t, server.Raw(list[0].ID), m, want)
		got := server.Message(list[0].ID)
		if got.MessageID != m.ID || strings.ReplaceAll(got.HTML, "\r\n", "\n") != m.HTML {
			t.Errorf("%q: id %q, html %q", name, got.MessageID, got.HTML)
		}
		if want == name { // a text may hold line ends
			if text := strings.ReplaceAll(got.Text, "\r\n", "\n"); strings.TrimSpace(text) != strings.TrimSpace(m.Text) {
				t.Errorf("text of %q:\n%s", name, cmp.Diff(m.Text, text))
			}
		}
		server.DeleteAll()
	}
}

// checkHeaders reads the message as a mail program does.
func checkHeaders(t *testing.T, raw string, m mail.Message, name string) {
	t.Helper()
	read, err := netmail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	decoder := new(mime.WordDecoder)
	subject, err := decoder.DecodeHeader(read.Header.Get("Subject"))
	if err != nil || subject != "Convocation : "+name {
		t.Errorf("subject %q, want %q (%v)", subject, "Convocation : "+name, err)
	}
	for header, want := range map[string]netmail.Address{"From": {Name: name, Address: m.From}, "To": {Name: name, Address: m.To}} {
		list, err := read.Header.AddressList(header)
		if err != nil || len(list) != 1 || *list[0] != want {
			t.Errorf("%s %v, want %v (%v)", header, list, want, err)
		}
	}
	if read.Header.Get("Bcc") != "" || read.Header.Get("Auto-Submitted") != "auto-generated" || read.Header.Get("Message-Id") != "<"+m.ID+">" {
		t.Errorf("headers %v", read.Header)
	}
	for line := range strings.Lines(raw) {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestWrite_CarriesLetterAndCalendar(t *testing.T) {
	t.Parallel()
	server := mailpit.Start(t)
	conn := dial(t, serverAt(t, server.URL()))
	pdf := bytes.Repeat([]byte("%PDF-1.7\r\n\x00\xff.\r\n"), 2000)
	ics := []byte("BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n")
	m := messageTo("awa@example.org")
	m.ReplyTo = "secretariat@example.org"
	m.Date = time.Date(2026, 7, 14, 8, 30, 0, 0, time.FixedZone("", 3600))
	m.HTML = "<p>Bonjour</p>"
	m.Attachments = []mail.Attachment{
		{Name: `Convocation N'Guessan – Éric/2 "b".pdf`, ContentType: "application/pdf", Body: pdf},
		{Name: "convocation.ics", ContentType: "text/calendar; charset=utf-8; method=REQUEST", Body: ics},
		{Name: "\r\n", ContentType: "no kind at all;;;\r\nX-Injected: yes", Body: []byte("x")},
	}
	if o := conn.Send(t.Context(), m); o.State != mail.Sent {
		t.Fatalf("%+v", o)
	}
	id := server.List()[0].ID
	got, raw := server.Message(id), server.Raw(id)
	if !got.Date.Equal(m.Date) || len(got.ReplyTo) != 1 || got.ReplyTo[0].Address != m.ReplyTo {
		t.Errorf("date %s, reply to %v", got.Date, got.ReplyTo)
	}
	if len(got.Attachments) != 3 || len(got.Inline) != 0 {
		t.Fatalf("attachments %+v, inline %+v", got.Attachments, got.Inline)
	}
	for i, want := range []struct {
		name, kind string
		body       []byte
	}{{`Convocation N'Guessan – Éric-2 "b".pdf`, "application/pdf", pdf}, {"convocation.ics", "text/calendar", ics}, {"file", "application/octet-stream", []byte("x")}} {
		a := got.Attachments[i]
		if a.FileName != want.name || a.ContentType != want.kind || !bytes.Equal(server.Part(id, a.PartID), want.body) {
			t.Errorf("attachment %+v, want %s", a, want.name)
		}
	}
	if !strings.Contains(raw, "Content-Type: text/calendar; charset=utf-8; method=REQUEST\r\n") || strings.Contains(raw, "X-Injected") {
		t.Errorf("headers of the parts:\n%.3000s", raw)
	}
	mixed, alternative := strings.Index(raw, "multipart/mixed"), strings.Index(raw, "multipart/alternative")
	plain, html := strings.Index(raw, "text/plain"), strings.Index(raw, "text/html")
	if mixed < 0 || alternative < mixed || plain < alternative || html < plain {
		t.Errorf("order of the parts: %d %d %d %d", mixed, alternative, plain, html)
	}
}

func TestWrite_RefusesAnIDThatWouldNotArrive(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "x", "@example.org", "a b@example.org", "a@example.org\r\nBcc: eve@example.org", "é@example.org", strings.Repeat("a", 300) + "@x"} {
		m := messageTo("awa@example.org")
		m.ID = id
		if _, err := m.Write(); err == nil {
			t.Errorf("%q is taken", id)
		}
	}
	m := messageTo("awa@example.org")
	m.ID = "<" + m.ID + ">"
	if written, err := m.Write(); err != nil || !strings.Contains(string(written), "Message-ID: "+m.ID+"\r\n") {
		t.Errorf("an id in brackets: %v\n%s", err, written)
	}
}

// A real server with a certificate and a password, over STARTTLS and from the first byte.
func TestDial_ProtectedAndLoggedIn(t *testing.T) {
	t.Parallel()
	certificate, key, roots := certify(t)
	users := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(users, []byte("ecole:geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for scheme, more := range map[string]string{"smtp": "--smtp-require-starttls", "smtps": "--smtp-require-tls"} {
		pit := mailpit.Start(t, "--smtp-tls-cert", certificate, "--smtp-tls-key", key, "--smtp-auth-file", users, more)
		server := serverAt(t, scheme+"://ecole:geheim@"+pit.SMTP)
		expectDown(t, server, mail.ReasonTLS, "certificate", 0) // nobody vouches for it
		server.Roots = roots
		conn := dial(t, server)
		for range 2 {
			if o := conn.Send(t.Context(), messageTo("awa@example.org")); o.State != mail.Sent {
				t.Errorf("%s: %+v", scheme, o)
			}
		}
		server.Password = "falsch-falsch"
		expectDown(t, server, mail.ReasonLogin, "535", 0)
		if arrived := len(pit.List()); arrived != 2 {
			t.Errorf("%s: %d arrived", scheme, arrived)
		}
	}
}

func certify(t *testing.T) (certificate, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	certificate = write("certificate.pem", "CERTIFICATE", der)
	content, err := os.ReadFile(certificate)
	if err != nil || !roots.AppendCertsFromPEM(content) {
		t.Fatalf("trust the certificate: %v", err)
	}
	return certificate, write("key.pem", "PRIVATE KEY", secret), roots
}

// BenchmarkSend measures one connection, with a letter of 30 kB: to a real server, which stores what comes, and to one that
// keeps it in memory, which shows what sending itself costs.
func BenchmarkSend(b *testing.B) {
	for name, start := range map[string]func(*testing.B) string{
		"mailpit": func(b *testing.B) string { return mailpit.Start(b).URL() },
		"memory":  func(b *testing.B) string { return smtpfault.Start(b, nil).URL() },
	} {
		b.Run(name, func(b *testing.B) { benchmarkSend(b, start(b)) })
	}
}

func benchmarkSend(b *testing.B, url string) {
	s, err := mail.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := mail.Dial(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	m := messageTo("awa@example.org")
	m.HTML = "<p>Bonjour</p>"
	pdf := make([]byte, 30_000)
	if _, err := rand.Read(pdf); err != nil {
		b.Fatal(err)
	}
	m.Attachments = []mail.Attachment{{Name: "convocation.pdf", ContentType: "application/pdf", Body: pdf}}
	for b.Loop() {
		if o := conn.Send(b.Context(), m); o.State != mail.Sent {
			b.Fatalf("%+v", o)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// Programs that show headers as they stand must find the subject beside its name; each encoded word is
// whole letters (RFC 2047).
func TestWrite_SubjectBeginsBesideItsName(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"Convocation : épreuve de mathématiques, lundi 4 janvier 2027 à 08:00, École nationale d'ingénieurs",
		"é", strings.Repeat("é", 200), strings.Repeat("王", 100), "=?utf-8?q?what?= looks encoded already", "Plain, and long enough to be folded somewhere behind its beginning, one would say",
	} {
		m := messageTo("awa@example.org")
		m.Subject = subject
		written, err := m.Write()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(written), "Subject:\r\n") || strings.Contains(string(written), "Subject: \r\n") {
			t.Errorf("%q begins with an empty line: %.200q", subject, written)
		}
		read, err := netmail.ReadMessage(strings.NewReader(string(written)))
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(read.Header.Get("Subject")) {
			decoded, err := new(mime.WordDecoder).Decode(word)
			if strings.HasPrefix(word, "=?") && (err != nil || !utf8.ValidString(decoded) || strings.ContainsRune(decoded, utf8.RuneError)) {
				t.Errorf("%q: the word %s is %q (%v)", subject, word, decoded, err)
			}
		}
		if got, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err != nil || got != subject {
			t.Errorf("%q is read as %q (%v)", subject, got, err)
		}
	}
}

// A Message-ID stands beside the name of its header, however long it is: programs that read headers as they stand
// find it, and a server that hands it on changes nothing.
func TestWrite_IDStandsBesideItsName(t *testing.T) {
	t.Parallel()
	for _, length := range []int{10, 40, 46, 47, 48, 49, 50, 51, 60, 200} {
		m := messageTo("awa@example.org")
		m.ID = strings.Repeat("a", length) + "@ecole.example"
		m.Text, m.HTML, m.Attachments = "Bonjour.", "", nil
		written, err := m.Write()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(written), "\r\nMessage-ID: <"+m.ID+">\r\n") {
			t.Errorf("%d letters: %.300q", len(m.ID), written)
		}
		read, err := netmail.ReadMessage(strings.NewReader(string(written)))
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(read.Body); err != nil || strings.TrimSpace(body.String()) != "Bonjour." {
			t.Errorf("%d letters: the body is %q (%v)", len(m.ID), body.String(), err)
		}
	}
}
