// SPDX-License-Identifier: Apache-2.0

// Package toy is a service for tests of the provider, until its client is written for skeleton: an HTTP API for groups of containers, in this
// process. It starts no programs: a container only prints its command. The contract tests replace that with Server.Work.
//
// Its requests, with bodies in JSON (api.go):
//
//	GET    /v1/groups?tag=KEY=VALUE&after=NAME    groups with all these tags, a page of them; next is the after of the next page
//	PUT    /v1/groups/NAME                        make a group; an existing one is returned as it is, and 409 if it was asked for otherwise
//	GET    /v1/groups/NAME                        one group
//	DELETE /v1/groups/NAME?grace=SECONDS          stop a group, listed for a minute after its end; remove an ended group
//	GET    /v1/groups/NAME/containers/C/log       lines with their times; with previous=true the lines of the run before, with since=TIME the newer ones
//	GET    /v1/groups/NAME/containers/C/exec      a websocket; command=WORD for each word, stdin=true, tty=true; see session.go
//
// Note: it loses all state when it ends, requires no credentials, and gives each group an address of the loopback network.
package toy
