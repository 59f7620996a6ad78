// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/entra"
)

// Audiences of tokens.
const (
	Batch   = "https://batch.core.windows.net"
	Storage = "https://storage.azure.com"
)

// ContainerPath is the path of the container of blobs at this server.
const ContainerPath = "/pods"

// Store is a container of blobs.
type Store struct {
	tokens *entra.Tokens

	mu    sync.Mutex
	blobs map[string]*blob // guarded by mu
	made  int              // guarded by mu
}

// blob is replaced, and never changed.
type blob struct {
	data     []byte
	meta     map[string]string
	etag     string
	modified time.Time
	append   bool
	blocks   int
}

func newStore(tokens *entra.Tokens) *Store {
	return &Store{tokens: tokens, blobs: map[string]*blob{}}
}

func (s *Store) get(name string) *blob {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[name]
}

// Data returns the data of a blob, or nil if there is no such blob.
func (s *Store) Data(name string) []byte {
	if b := s.get(name); b != nil {
		return b.data
	}
	return nil
}

// Names returns the sorted names of all blobs with a prefix.
func (s *Store) Names(prefix string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Put makes a blob of data. The caller must not change the data afterwards.
func (s *Store) Put(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(name, blob{data: data})
}

// PutWith makes a blob of data and metadata. The caller must not change them afterwards.
func (s *Store) PutWith(name string, data []byte, meta map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(name, blob{data: data, meta: meta})
}

// Metadata returns the metadata of a blob, or false if there is no such blob.
func (s *Store) Metadata(name string) (map[string]string, bool) {
	if b := s.get(name); b != nil {
		return b.meta, true
	}
	return nil, false
}

// Age makes a blob older.
func (s *Store) Age(name string, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.blobs[name]; b != nil {
		older := *b
		older.modified = b.modified.Add(-by)
		s.blobs[name] = &older
	}
}

// set replaces a blob. s.mu is held.
func (s *Store) set(name string, b blob) {
	s.made++
	b.etag, b.modified = fmt.Sprintf("\"0x%X\"", s.made), time.Now()
	s.blobs[name] = &b
}

// storeOperation returns the operation of a request for blobs.
func storeOperation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && q.Get("comp") != "":
		return map[string]string{"metadata": "SetBlobMetadata", "appendblock": "AppendBlock"}[q.Get("comp")]
	case r.Method == http.MethodPut:
		return "PutBlob"
	case r.Method == http.MethodGet && q.Get("comp") == "list":
		return "ListBlobs"
	case r.Method == http.MethodPost && q.Get("comp") == "batch":
		return "SubmitBatch"
	}
	return map[string]string{http.MethodGet: "GetBlob", http.MethodHead: "GetBlobProperties", http.MethodDelete: "DeleteBlob"}[r.Method]
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

func (s *Store) serve(w http.ResponseWriter, r *http.Request, denied bool) {
	if code, _ := s.tokens.Known(r, []string{Storage}); code != "" {
		fail(w, http.StatusUnauthorized, "InvalidAuthenticationInfo")
		return
	}
	if denied {
		fail(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
		return
	}
	if r.Header.Get("x-ms-version") < "2019-12-12" {
		fail(w, http.StatusBadRequest, "InvalidHeaderValue")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidInput")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, ContainerPath), "/")
	switch storeOperation(r) {
	case "ListBlobs":
		s.list(w, r.URL.Query())
	case "SubmitBatch":
		s.batch(w, r, body)
	case "PutBlob":
		s.put(w, r, name, body)
	default:
		s.one(w, r, name, body)
	}
}

func metaOf(h http.Header) map[string]string {
	meta := map[string]string{}
	size := 0
	for k, v := range h {
		if key, ok := strings.CutPrefix(k, "X-Ms-Meta-"); ok {
			meta[strings.ToLower(key)] = v[0]
			size += len(key) + len(v[0])
		}
	}
	if size > 8<<10 {
		return nil
	}
	return meta
}

func (s *Store) put(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	meta, kind := metaOf(r.Header), r.Header.Get("X-Ms-Blob-Type")
	switch {
	case meta == nil:
		fail(w, http.StatusBadRequest, "MetadataTooLarge")
	case kind != "BlockBlob" && kind != "AppendBlob" || kind == "AppendBlob" && len(body) > 0:
		fail(w, http.StatusBadRequest, "InvalidHeaderValue")
	case r.Header.Get("If-None-Match") == "*" && s.blobs[name] != nil:
		fail(w, http.StatusConflict, "BlobAlreadyExists")
	default:
		s.set(name, blob{data: body, meta: meta, append: kind == "AppendBlob"})
		w.WriteHeader(http.StatusCreated)
	}
}

// one answers a request for an existing blob.
func (s *Store) one(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	b := s.blobs[name]
	if b == nil {
		fail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	switch storeOperation(r) {
	case "SetBlobMetadata":
		next := *b
		if next.meta = metaOf(r.Header); next.meta == nil {
			fail(w, http.StatusBadRequest, "MetadataTooLarge")
			return
		}
		s.set(name, next)
	case "AppendBlock":
		s.appendBlock(w, r, name, body)
	case "DeleteBlob":
		delete(s.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	case "GetBlob", "GetBlobProperties":
		b.show(w, r)
	default:
		fail(w, http.StatusBadRequest, "UnsupportedHttpVerb")
	}
}

func (s *Store) appendBlock(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	b := s.blobs[name]
	position := r.Header.Get("X-Ms-Blob-Condition-Appendpos")
	switch {
	case !b.append:
		fail(w, http.StatusConflict, "InvalidBlobType")
	case len(body) == 0 || len(body) > 4<<20:
		fail(w, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge")
	case b.blocks >= 50000:
		fail(w, http.StatusConflict, "BlockCountExceedsLimit")
	case position != "" && position != strconv.Itoa(len(b.data)):
		fail(w, http.StatusPreconditionFailed, "AppendPositionConditionNotMet")
	default:
		next := *b
		next.data, next.blocks = append(bytes.Clone(b.data), body...), b.blocks+1
		s.set(name, next)
		w.WriteHeader(http.StatusCreated)
	}
}

// show answers with a blob, or a part of it.
func (b *blob) show(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", b.etag)
	h.Set("Last-Modified", b.modified.UTC().Format(http.TimeFormat))
	for k, v := range b.meta {
		h.Set("x-ms-meta-"+k, v)
	}
	if r.Header.Get("If-None-Match") == b.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data, status := b.data, http.StatusOK
	if text := r.Header.Get("x-ms-range"); text != "" {
		from, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(text, "bytes="), "-"))
		if err != nil || from >= len(data) {
			fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		data, status = data[from:], http.StatusPartialContent
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
}

// pageSize is the number of blobs on a page of a list. It is less than the 5000 of the service, so that there are several pages.
const pageSize = 200

func (s *Store) list(w http.ResponseWriter, q url.Values) {
	var names []string
	for name := range s.blobs {
		if strings.HasPrefix(name, q.Get("prefix")) && name >= q.Get("marker") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	next := ""
	if len(names) > pageSize {
		next, names = names[pageSize], names[:pageSize]
	}
	var out bytes.Buffer
	out.WriteString(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`)
	text := func(v string) string {
		var b bytes.Buffer
		_ = xml.EscapeText(&b, []byte(v)) // a buffer never fails
		return b.String()
	}
	for _, name := range names {
		b := s.blobs[name]
		fmt.Fprintf(&out, "<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>%s</Etag><Content-Length>%d</Content-Length></Properties>",
			text(name), b.modified.UTC().Format(http.TimeFormat), text(b.etag), len(b.data))
		if strings.Contains(q.Get("include"), "metadata") {
			out.WriteString("<Metadata>")
			for k, v := range b.meta {
				fmt.Fprintf(&out, "<%s>%s</%s>", k, text(v), k)
			}
			out.WriteString("</Metadata>")
		}
		out.WriteString("</Blob>")
	}
	fmt.Fprintf(&out, "</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", text(next))
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write(out.Bytes())
}

// batch deletes blobs. Each part is authorized separately.
func (s *Store) batch(w http.ResponseWriter, r *http.Request, body []byte) {
	_, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidInput")
		return
	}
	var out bytes.Buffer
	answers := multipart.NewWriter(&out)
	for n, parts := 0, multipart.NewReader(bytes.NewReader(body), parameters["boundary"]); ; n++ {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		one, err := http.ReadRequest(bufio.NewReader(part))
		if err != nil || n >= 256 || one.Method != http.MethodDelete || part.Header.Get("Content-Type") != "application/http" {
			fail(w, http.StatusBadRequest, "InvalidInput")
			return
		}
		status, code := http.StatusAccepted, ""
		name := strings.TrimPrefix(one.URL.Path, ContainerPath+"/")
		if unknown, _ := s.tokens.Known(one, []string{Storage}); unknown != "" {
			status, code = http.StatusUnauthorized, "InvalidAuthenticationInfo"
		} else if s.blobs[name] == nil {
			status, code = http.StatusNotFound, "BlobNotFound"
		}
		if status == http.StatusAccepted {
			delete(s.blobs, name)
		}
		p, err := answers.CreatePart(map[string][]string{"Content-Type": {"application/http"}, "Content-Id": {part.Header.Get("Content-Id")}})
		if err != nil {
			panic(err)
		}
		// Like Azurite 3.35.0 and the example of the REST reference: the empty line after the header belongs to
		// the boundary.
		fmt.Fprintf(p, "HTTP/1.1 %d %s\r\nx-ms-error-code: %s\r\nContent-Length: 0\r\n", status, http.StatusText(status), code)
	}
	_ = answers.Close() // a buffer never fails
	w.Header().Set("Content-Type", "multipart/mixed; boundary="+answers.Boundary())
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(out.Bytes())
}
