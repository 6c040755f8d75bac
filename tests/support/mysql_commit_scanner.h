// Finds COMMITs in what a MySQL client sends.
//
// The protocol's packets have a head of 4 bytes: 3 of length, low byte first,
// and one of sequence; a statement is 0x03 and its text. A connection with TLS
// or compression shows nothing.
#ifndef TESTS_SUPPORT_MYSQL_COMMIT_SCANNER_H_
#define TESTS_SUPPORT_MYSQL_COMMIT_SCANNER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::e2e {

class MySqlCommitScanner {
 public:
  // Takes the next bytes of the stream, cut anywhere. Returns where in `bytes`
  // the first COMMIT ends, if one does; then call again with what follows.
  // Before that: where its packet begins, as far as it lies in `bytes`.
  struct Found {
    size_t begin;
    size_t end;
  };
  std::optional<Found> Scan(std::string_view bytes);

 private:
  std::string head_;        // Of the packet that has begun.
  size_t rest_ = 0;         // Bytes of it to come, once the head is complete.
  std::string text_;        // The first bytes of it.
  bool in_packet_ = false;  // The head is complete.
};

}  // namespace leasehold::e2e

#endif  // TESTS_SUPPORT_MYSQL_COMMIT_SCANNER_H_
