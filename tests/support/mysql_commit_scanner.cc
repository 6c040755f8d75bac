#include "tests/support/mysql_commit_scanner.h"

#include <strings.h>

#include <algorithm>

namespace leasehold::e2e {
namespace {

constexpr size_t kHeadBytes = 4;
constexpr char kStatement = 0x03;  // COM_QUERY
constexpr size_t kTextBytes = 8;   // "COMMIT" with its command byte, and more.

bool IsCommit(const std::string& packet) {
  return packet.size() == 7 && packet[0] == kStatement &&
         strncasecmp(packet.data() + 1, "COMMIT", 6) == 0;
}

}  // namespace

std::optional<MySqlCommitScanner::Found> MySqlCommitScanner::Scan(
    std::string_view bytes) {
  size_t begin = 0;
  size_t at = 0;
  while (at < bytes.size()) {
    if (!in_packet_) {
      if (head_.empty()) begin = at;
      head_.push_back(bytes[at++]);
      if (head_.size() < kHeadBytes) continue;
      rest_ = static_cast<unsigned char>(head_[0]) |
              static_cast<size_t>(static_cast<unsigned char>(head_[1])) << 8 |
              static_cast<size_t>(static_cast<unsigned char>(head_[2])) << 16;
      in_packet_ = true;
      text_.clear();
    }
    const size_t taken = std::min(rest_, bytes.size() - at);
    const size_t kept = std::min(taken, kTextBytes - text_.size());
    text_.append(bytes.substr(at, kept));
    at += taken;
    rest_ -= taken;
    if (rest_ > 0) break;
    in_packet_ = false;
    head_.clear();
    if (IsCommit(text_)) return Found{begin, at};
  }
  return std::nullopt;
}

}  // namespace leasehold::e2e
