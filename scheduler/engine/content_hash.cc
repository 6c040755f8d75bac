#include <openssl/sha.h>

#include <cstdint>

#include "scheduler/engine/submit_batcher.h"

namespace leasehold::scheduler {
namespace {

// Lengths go in front, so that no two different contents concatenate alike.
void AppendField(const std::string& field, std::string* text) {
  const uint64_t size = field.size();
  for (int shift = 0; shift < 64; shift += 8) {
    text->push_back(static_cast<char>(size >> shift));
  }
  text->append(field);
}

}  // namespace

std::string ContentHash(const TaskSpec& spec) {
  std::string text;
  text.reserve(spec.payload.bytes.size() + spec.queue.size() +
               spec.type.size() + 32);
  AppendField(spec.queue, &text);
  AppendField(spec.type, &text);
  text.push_back(static_cast<char>(spec.payload.kind));
  AppendField(spec.payload.bytes, &text);
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(hash.data()));
  return hash;
}

}  // namespace leasehold::scheduler
