// SPDX-License-Identifier: Apache-2.0

package azblobs

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// Scope is the scope of tokens for Azure Storage, in every cloud of Azure.
	Scope = "https://storage.azure.com"
	// version is the version of the service. This package needs 2019-12-12 or later.
	version = "2021-12-02"
	// callTime bounds a request and its response, except for the program of tasks.
	callTime = time.Minute
	// maxPages bounds the pages of a list. A page has up to 5000 blobs.
	maxPages = 1000
	metaHead = "X-Ms-Meta-"
)

// Container is a container of blobs.
type Container struct {
	// URL is the URL of the container.
	URL string
	// HTTP sends requests, and Token returns their bearer token.
	HTTP  *http.Client
	Token func(context.Context) (string, error)
}

// Blob is a blob with its known properties.
type Blob struct {
	Name, ETag string
	Modified   time.Time
	Size       int64
	Metadata   map[string]string // by names in lower case
	Data       []byte            // set by Get
}

// Error is an error response.
type Error struct {
	Status int
	Code   string // x-ms-error-code
	text   string
	after  string
}

// Error implements error.
func (e *Error) Error() string { return e.text }

// Has reports whether an error is a response with one of these HTTP statuses.
func Has(err error, statuses ...int) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, s := range statuses {
		if e.Status == s {
			return true
		}
	}
	return false
}

// advice is the advice for an error, by its code. See "Common REST API error codes" of Azure Storage,
// 2024-05-08.
var advice = map[string]string{
	"AuthorizationPermissionMismatch": "give the identity the role Storage Blob Data Contributor on the container, and wait some minutes",
	"AuthorizationFailure":            "look at the network rules of the storage account",
	"ContainerNotFound":               "make the container of storage.containerURL, or correct it",
	"InvalidAuthenticationInfo":       "look at the clock of this machine",
	"AccountIsDisabled":               "the storage account is disabled",
}

// explainAnswer turns an error response into an error. The kind is not-found for a missing blob. The error has the retry delay of the service, if
// any.
func explainAnswer(what string, answer *http.Response) error {
	e := &Error{Status: answer.StatusCode, Code: answer.Header.Get("x-ms-error-code"), after: answer.Header.Get("Retry-After")}
	e.text = fmt.Sprintf("%s: Azure Storage answers %d %s", what, e.Status, e.Code)
	if do := advice[e.Code]; do != "" {
		e.text += ": " + do
	}
	if id := answer.Header.Get("x-ms-request-id"); id != "" {
		e.text += ", request " + id
	}
	var out error = e
	if e.Status == http.StatusNotFound && e.Code == "BlobNotFound" { // not a missing container or account, or a proxy
		out = errdefs.AsNotFound(out)
	}
	if e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(e.after) // without a value, the minimum applies
		out = errdefs.RetryAfter(out, time.Duration(max(seconds, 2))*time.Second)
	}
	return out
}

// sendRequest makes a request, and returns its answer. The caller closes the answer. The query is of the form
// "comp=list&…".
func (c *Container) sendRequest(ctx context.Context, method, name, query string, header http.Header, body io.Reader, size int64) (*http.Response, error) {
	target := c.URL
	if name != "" {
		target += "/" + (&url.URL{Path: name}).EscapedPath()
	}
	if query != "" {
		target += "?" + query
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = size
	for k, v := range header {
		r.Header[k] = v
	}
	token, err := c.Token(ctx)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("x-ms-version", version)
	what := method + " blob " + name
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotModified {
		defer answer.Body.Close()
		return nil, explainAnswer(what, answer)
	}
	return answer, nil
}

// requestProperties makes a request, ignores the body of the answer, and returns the properties of the blob in the header.
func (c *Container) requestProperties(ctx context.Context, method, name, query string, header http.Header, data []byte) (Blob, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.sendRequest(ctx, method, name, query, header, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Blob{}, err
	}
	return blobOf(name, answer), answer.Body.Close()
}

func withMetadata(header http.Header, values map[string]string) http.Header {
	for k, v := range values {
		header.Set(metaHead+k, v)
	}
	return header
}

// Put writes a block blob. With once, an existing blob stays, and Put fails with the status 409.
func (c *Container) Put(ctx context.Context, name string, data []byte, meta map[string]string, once bool) error {
	header := withMetadata(http.Header{"X-Ms-Blob-Type": {"BlockBlob"}}, meta)
	if once {
		header.Set("If-None-Match", "*")
	}
	_, err := c.requestProperties(ctx, http.MethodPut, name, "", header, data)
	return err
}

// Upload writes a block blob of a size from a reader, without a time limit.
func (c *Container) Upload(ctx context.Context, name string, from io.Reader, size int64) error {
	answer, err := c.sendRequest(ctx, http.MethodPut, name, "", http.Header{"X-Ms-Blob-Type": {"BlockBlob"}}, from, size)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// SetMetadata replaces the metadata of a blob. The blob gets another ETag.
func (c *Container) SetMetadata(ctx context.Context, name string, meta map[string]string) error {
	_, err := c.requestProperties(ctx, http.MethodPut, name, "comp=metadata", withMetadata(http.Header{}, meta), nil)
	return err
}

// Head returns the properties of a blob without its data.
func (c *Container) Head(ctx context.Context, name string) (Blob, error) {
	return c.requestProperties(ctx, http.MethodHead, name, "", nil, nil)
}

// Get returns a blob from an offset on. Data is nil if the blob still has the ETag, or has no byte at the
// offset.
func (c *Container) Get(ctx context.Context, name, unlessETag string, offset int64) (Blob, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	header := http.Header{}
	if unlessETag != "" {
		header.Set("If-None-Match", unlessETag)
	}
	if offset > 0 {
		header.Set("x-ms-range", fmt.Sprintf("bytes=%d-", offset))
	}
	answer, err := c.sendRequest(ctx, http.MethodGet, name, "", header, nil, 0)
	if Has(err, http.StatusRequestedRangeNotSatisfiable) {
		return Blob{Name: name}, nil
	}
	if err != nil {
		return Blob{}, err
	}
	defer answer.Body.Close()
	out := blobOf(name, answer)
	if answer.StatusCode != http.StatusNotModified {
		if out.Data, err = io.ReadAll(answer.Body); err != nil {
			return Blob{}, fmt.Errorf("read blob %s: %w", name, err)
		}
	}
	return out, nil
}

func blobOf(name string, answer *http.Response) Blob {
	out := Blob{Name: name, ETag: answer.Header.Get("ETag"), Size: answer.ContentLength, Metadata: map[string]string{}}
	out.Modified, _ = http.ParseTime(answer.Header.Get("Last-Modified")) // without a value, the time is zero
	for k, v := range answer.Header {
		if key, ok := strings.CutPrefix(k, metaHead); ok {
			out.Metadata[strings.ToLower(key)] = v[0]
		}
	}
	return out
}

// NewAppend makes an empty append blob. An existing append blob stays as it is.
func (c *Container) NewAppend(ctx context.Context, name string) error {
	_, err := c.requestProperties(ctx, http.MethodPut, name, "", http.Header{"X-Ms-Blob-Type": {"AppendBlob"}, "If-None-Match": {"*"}}, nil)
	if Has(err, http.StatusConflict) {
		return nil
	}
	return err
}

// Append adds bytes to an append blob of a size. After an error, the blob may or may not have the bytes. Repeating the call is safe.
func (c *Container) Append(ctx context.Context, name string, data []byte, size int64) error {
	_, err := c.requestProperties(ctx, http.MethodPut, name, "comp=appendblock", http.Header{"X-Ms-Blob-Condition-Appendpos": {strconv.FormatInt(size, 10)}}, data)
	if !Has(err, http.StatusPreconditionFailed) {
		return err
	}
	if has, headErr := c.Head(ctx, name); headErr == nil && has.Size == size+int64(len(data)) {
		return nil // the response was lost
	}
	return err
}

// Delete removes a blob. A missing blob is no error.
func (c *Container) Delete(ctx context.Context, name string) error {
	_, err := c.requestProperties(ctx, http.MethodDelete, name, "", nil, nil)
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// list is a page of a list.
type list struct {
	Blobs struct {
		Blob []struct {
			Name       string
			Properties struct {
				Modified string `xml:"Last-Modified"`
				ETag     string `xml:"Etag"`
				Size     int64  `xml:"Content-Length"`
			}
			Metadata struct {
				All []struct {
					XMLName xml.Name
					Value   string `xml:",chardata"`
				} `xml:",any"`
			}
		}
	}
	NextMarker string
}

// List returns all blobs with a prefix, with their metadata if meta is true.
func (c *Container) List(ctx context.Context, prefix string, meta bool) (all []Blob, err error) {
	q := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}}
	if meta {
		q.Set("include", "metadata")
	}
	for range maxPages {
		page, err := c.readPage(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Blobs.Blob {
			out := Blob{Name: b.Name, ETag: b.Properties.ETag, Size: b.Properties.Size, Metadata: map[string]string{}}
			out.Modified, _ = http.ParseTime(b.Properties.Modified)
			for _, m := range b.Metadata.All {
				out.Metadata[strings.ToLower(m.XMLName.Local)] = m.Value
			}
			all = append(all, out)
		}
		if page.NextMarker == "" {
			return all, nil
		}
		q.Set("marker", page.NextMarker)
	}
	return nil, fmt.Errorf("list blobs: the list has more than %d pages", maxPages)
}

func (c *Container) readPage(ctx context.Context, q url.Values) (out list, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.sendRequest(ctx, http.MethodGet, "", q.Encode(), nil, nil, 0)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close()
	if err := xml.NewDecoder(answer.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("list blobs: the answer is not understood: %w", err)
	}
	return out, nil
}
