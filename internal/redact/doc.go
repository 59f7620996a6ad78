// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets out of what a provider says, before it is in a log, an event, a
// status or a span.
//
// The guarantee: a value of eight bytes or more, of a Secret that this process read for a pod, a
// token or a password that it handed out for it, is not in a text about that pod, as it is, in
// base64, escaped for a URL or quoted; no text has what looks like a bearer token, a password in a
// URL or a private key; and no text is longer than Limit.
//
// What surprises: shorter values stay, because Secrets hold settings too, and without "http" and
// "prod" no text could be read. A value that the process has not read, such as that of a pod which was
// found at the backend after a restart, is taken out only if it looks like a credential.
package redact
