// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes new providers: a Go module, or a plugin in Python, that passes the contract tests with a service in memory, and marks the
// code that its author has to fill in.
//
// The guarantee: a provider is written completely or not at all. The written code is tested unchanged: vk-skeleton/ is a program of this module that
// passes the contract tests, and the tests generate, build and run both languages.
//
// Note: templates have no placeholders. They are the files of a provider called skeleton, and every occurrence of its name is replaced, even
// inside words.
package scaffold
