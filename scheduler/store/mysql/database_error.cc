#include "scheduler/store/mysql/database_error.h"

#include "absl/strings/str_cat.h"

namespace leasehold::scheduler {

bool BreaksSession(unsigned number) {
  switch (number) {
    case 1053:  // Server shutdown in progress
    case 1077:  // Normal shutdown
    case 1290:  // Running with --read-only
    case 1317:  // Query execution was interrupted
    case 1792:  // Cannot execute statement in a READ ONLY transaction
    case 1836:  // Running in read-only mode
    case 1927:  // Connection was killed
    case 2000:  // Unknown client error
    case 2002:  // Cannot connect through the socket
    case 2003:  // Cannot connect to the host
    case 2005:  // Unknown host
    case 2006:  // Server has gone away
    case 2012:  // Error in the handshake
    case 2013:  // Lost connection during the query
    case 2014:  // Commands out of sync
    case 2026:  // TLS error
    case 2027:  // Malformed packet
    case 2055:  // Lost connection, with the system's error
    case 4031:  // Disconnected by the server because of inactivity
    case 5014:  // libmariadb: local infile or connection state
      return true;
    default:
      return false;
  }
}

bool IsMissingRight(unsigned number) {
  return number == 1044 || number == 1142 || number == 1143 || number == 1227 ||
         number == 1370;
}

bool IsRetryable(unsigned number) {
  return number == kErrDeadlock || number == kErrLockWaitTimeout ||
         number == kErrRecordChanged;
}

absl::Status StatusFromDatabaseError(absl::string_view statement,
                                     unsigned number) {
  const std::string where = absl::StrCat(" (MySQL ", number, ")");
  switch (number) {
    case 1290:
    case 1792:
    case 1836:
      return absl::UnavailableError(
          absl::StrCat(statement, ": database is read-only", where));
    case 1040:  // Too many connections
    case 1203:  // User has too many connections
    case 1226:  // User has exceeded a resource limit
      return absl::UnavailableError(absl::StrCat(
          statement, ": database has too many connections", where));
    case 1021:  // Disk full
    case 1041:  // Out of memory
    case 1114:  // Table is full
    case 1047:  // WSREP has not yet prepared node for application use
      return absl::UnavailableError(
          absl::StrCat(statement, ": database refuses writes", where));
    case kErrDeadlock:
    case kErrRecordChanged:
      return absl::AbortedError(absl::StrCat(statement, ": deadlock", where));
    case kErrLockWaitTimeout:
      return absl::AbortedError(
          absl::StrCat(statement, ": waited too long for a lock", where));
    case kErrDuplicateKey:
      return absl::AlreadyExistsError(
          absl::StrCat(statement, ": duplicate key", where));
    default:
      break;
  }
  if (BreaksSession(number)) {
    return absl::UnavailableError(
        absl::StrCat(statement, ": database unreachable", where));
  }
  return absl::InternalError(
      absl::StrCat(statement, ": database error", where));
}

absl::Status StatusFromConnectError(absl::string_view address, unsigned number,
                                    absl::string_view detail) {
  const std::string where = absl::StrCat(" (MySQL ", number, ": ", detail, ")");
  switch (number) {
    case 1044:
      return absl::PermissionDeniedError(
          absl::StrCat(address, ": the user may not use this database", where));
    case 1045:
    case 1698:
      return absl::PermissionDeniedError(
          absl::StrCat(address, ": wrong user or password", where));
    case 1049:
      return absl::NotFoundError(
          absl::StrCat(address, ": no such database, create it first", where));
    default:
      return absl::UnavailableError(
          absl::StrCat(address, ": cannot connect", where));
  }
}

}  // namespace leasehold::scheduler
