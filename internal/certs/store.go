package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pollInterval is the interval at which files are checked for changes.
	pollInterval = time.Second
	// expiryNotice is the remaining validity from which warnings are logged.
	expiryNotice = 14 * 24 * time.Hour
	// expiryRepeat is the interval of these warnings.
	expiryRepeat = 24 * time.Hour
)

// Files are the PEM files of a certificate, which may be followed by intermediate ones, its
// key, and the certificates of authorities that peers are verified with. CA may be empty.
type Files struct {
	Cert, Key, CA string
	CAKey         string // key of the configuration with CA; empty for ca-file
	// Renewed reports that the server renews the certificate itself.
	Renewed bool
}

func (f Files) caKey() string { return cmp.Or(f.CAKey, "ca-file") }

// Pair is the content of the files at one time.
type Pair struct {
	Certificate tls.Certificate // its Leaf is set
	CAs         *x509.CertPool  // nil without Files.CA
	// Authorities are the certificates in CAs.
	Authorities []*x509.Certificate
}

// Store holds the current content of the files.
type Store struct {
	name    string // for messages
	files   Files
	log     *slog.Logger
	check   func(*Pair) error
	current atomic.Pointer[Pair]

	mu      sync.Mutex // covers the fields below
	stamps  [3]stamp
	failed  string // the last error
	warned  time.Time
	expired bool // when warned was set
}

// stamp identifies a version of a file.
type stamp struct {
	modified time.Time
	size     int64
}

// Open reads the files. The name is that of the configuration section. check may reject what
// they contain; it may be nil.
func Open(name string, files Files, check func(*Pair) error, log *slog.Logger) (*Store, error) {
	s := &Store{name: name, files: files, log: log, check: check}
	s.stamps = s.stat()
	p, err := s.read()
	if err != nil {
		return nil, err
	}
	s.current.Store(p)
	s.warnExpiry(time.Now())
	return s, nil
}

// Current returns what was read last.
func (s *Store) Current() *Pair { return s.current.Load() }

// Expires returns the end of the validity of the certificate.
func (s *Store) Expires() time.Time { return s.Current().Certificate.Leaf.NotAfter }

// Run reads the files again when they change, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.poll()
			s.warnExpiry(now)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Store) poll() {
	s.mu.Lock()
	changed := s.stat() != s.stamps
	s.mu.Unlock()
	if changed {
		_ = s.Reload() // it is logged, and repeated at the next change
	}
}

// Reload reads the files again. After an error the previous content remains in use.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamps := s.stat()
	p, err := s.read()
	if err == nil {
		if err = s.replaceable(p, time.Now()); err != nil {
			s.replaceAuthorities(p)
		}
	}
	if err != nil {
		if text := err.Error(); text != s.failed { // files are replaced one after another
			s.failed = text
			s.log.Error("certificate not reloaded, the previous one remains in use", "section", s.name, "err", err)
		}
		return err
	}
	s.stamps, s.failed, s.warned = stamps, "", time.Time{}
	s.current.Store(p)
	s.log.Info("certificate reloaded", "section", s.name, "expires", p.Certificate.Leaf.NotAfter, "serial", p.Certificate.Leaf.SerialNumber.Text(16))
	return nil
}

// replaceable returns an error if p has expired, unless the current certificate has, too.
func (s *Store) replaceable(p *Pair, now time.Time) error {
	if end := p.Certificate.Leaf.NotAfter; now.After(end) && now.Before(s.Expires()) {
		return fmt.Errorf("%s: the certificate in cert-file has expired on %s", s.name, end.Format(time.DateOnly))
	}
	return nil
}

// replaceAuthorities uses the authorities of p with the current certificate: those that were removed must not be
// trusted until the certificate has been replaced.
func (s *Store) replaceAuthorities(p *Pair) {
	current := s.Current()
	p.Certificate = current.Certificate
	if !p.CAs.Equal(current.CAs) {
		s.current.Store(p)
		s.log.Info("authorities reloaded", "section", s.name)
	}
}

func (s *Store) stat() (stamps [3]stamp) {
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.CA} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

func (s *Store) read() (*Pair, error) {
	if err := CheckPermissions(s.files.Key); err != nil {
		return nil, fmt.Errorf("%s.key-file: %w", s.name, err)
	}
	WarnOfGroup(s.files.Key, s.name+".key-file", s.log)
	pair, err := tls.LoadX509KeyPair(s.files.Cert, s.files.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: read cert-file and key-file: %w", s.name, err)
	}
	p := &Pair{Certificate: pair}
	if s.files.CA != "" {
		text, err := os.ReadFile(s.files.CA)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", s.name, s.files.caKey(), err)
		}
		p.CAs, p.Authorities = x509.NewCertPool(), parseCertificates(text)
		for _, cert := range p.Authorities {
			p.CAs.AddCert(cert)
		}
		if len(p.Authorities) == 0 {
			return nil, fmt.Errorf("%s.%s: %s contains no certificate in PEM format", s.name, s.files.caKey(), s.files.CA)
		}
	}
	if s.check != nil {
		if err := s.check(p); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return p, nil
}

// parseCertificates returns the certificates in a text in PEM format.
func parseCertificates(text []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			list = append(list, cert)
		}
	}
	return list
}

func (s *Store) warnExpiry(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notice := expiryNotice
	if leaf := s.Current().Certificate.Leaf; s.files.Renewed {
		notice = min(notice, leaf.NotAfter.Sub(RenewAt(leaf))/2) // it should have been renewed
	}
	left := s.Expires().Sub(now)
	expired := left <= 0
	if left >= notice || now.Sub(s.warned) < expiryRepeat && expired == s.expired {
		return
	}
	s.warned, s.expired = now, expired
	remedy := "replace its files, which are read again"
	if s.files.Renewed {
		remedy = "the attempts to renew it have failed"
	}
	args := []any{"section", s.name, "expires", s.Expires(), "file", s.files.Cert, "remedy", remedy}
	if expired {
		s.log.Error("certificate has expired", args...)
		return
	}
	s.log.Warn("certificate expires soon", args...)
}

// AuthoritiesPEM returns the certificates of the authorities.
func (p *Pair) AuthoritiesPEM() (text []byte) {
	for _, cert := range p.Authorities {
		text = append(text, encodePEM("CERTIFICATE", cert.Raw)...)
	}
	return text
}
