// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from the messages of a provider before they reach a log, an event, a status or a span.
//
// The guarantee: no text about a pod contains a value of eight bytes or more of a Secret that this process read for the pod, or a token or password
// that it gave to the pod, whether plain, in base64, URL-escaped or quoted. No text contains a bearer token, a password in a URL or a private key. No
// text is longer than Limit.
//
// Note: shorter values stay, because Secrets also contain settings such as "http" and "prod", and texts would be unreadable without these
// words. A value that the process has not read, for example of a pod that it found at the backend after a restart, is only removed if it looks like a
// credential.
package redact
