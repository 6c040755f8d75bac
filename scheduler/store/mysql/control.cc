// What is rare and small: clock, ids, lanes, queues, holders, and the latest
// progress of leases.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "scheduler/domain/limits.h"
#include "scheduler/store/mysql/mysql_task_store.h"
#include "scheduler/store/mysql/sql_text.h"
#include "scheduler/store/mysql/statements.h"

namespace leasehold::scheduler {
namespace {

using Names = std::pair<std::string, std::string>;

// A table that gives small ids to pairs of names.
struct InternTable {
  const char* counter;  // Row of id_blocks; its lock makes one replica wait for
                        // the other, and no id is lost.
  const char* table;
  const char* first;
  const char* second;
  int64_t max_id;
};

absl::StatusOr<std::map<Names, int64_t>> SelectInterned(
    Connection& connection, const InternTable& table,
    absl::Span<const Names> names) {
  std::map<Names, int64_t> found;
  constexpr size_t kNamesPerStatement = 100;
  for (size_t i = 0; i < names.size(); i += kNamesPerStatement) {
    SqlText sql(absl::StrCat("SELECT id, ", table.first, ", ", table.second,
                             " FROM ", table.table, " WHERE "));
    const char* separator = "(";
    for (const auto& [first, second] : names.subspan(i, kNamesPerStatement)) {
      sql.Raw(separator).Raw(table.first).Raw(" = ").Text(first);
      sql.Raw(" AND ").Raw(table.second).Raw(" = ").Text(second).Raw(")");
      separator = " OR (";
    }
    LEASEHOLD_ASSIGN_OR_RETURN(
        const Rows rows, connection.Select("find_names", sql.str(), "itt"));
    for (size_t row = 0; row < rows.size(); ++row) {
      found[{rows.Text(row, 1), rows.Text(row, 2)}] = rows.Int(row, 0);
    }
  }
  return found;
}

// Adds those of `names` that are missing; under the lock of the counter's row.
absl::Status AddMissing(Connection& connection, const InternTable& table,
                        absl::Span<const Names> names,
                        std::map<Names, int64_t>* found) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      const Rows counter,
      connection.Select("lock_counter",
                        SqlText("SELECT next FROM id_blocks WHERE name = ")
                            .Text(table.counter)
                            .Raw(" FOR UPDATE")
                            .str(),
                        "i"));
  if (counter.empty()) return absl::InternalError("id_blocks: row is missing");
  int64_t next = counter.Int(0, 0);
  // Another replica may have added them in the meantime.
  LEASEHOLD_ASSIGN_OR_RETURN(*found, SelectInterned(connection, table, names));
  const bool has_time = absl::string_view(table.table) == "executors";
  SqlText insert(absl::StrCat("INSERT INTO ", table.table, " (id, ",
                              table.first, ", ", table.second,
                              has_time ? ", create_us" : "", ") VALUES "));
  LEASEHOLD_ASSIGN_OR_RETURN(const int64_t now_us, SelectNowUs(connection));
  for (const Names& name : names) {
    if (!found->emplace(name, next).second) continue;
    if (next > table.max_id) {
      return absl::ResourceExhaustedError(
          absl::StrCat(table.table, ": ", table.max_id, " exist already"));
    }
    if (has_time) {
      insert.Row(next, name.first, name.second, now_us);
    } else {
      insert.Row(next, name.first, name.second);
    }
    ++next;
  }
  if (insert.rows() == 0) return absl::OkStatus();
  LEASEHOLD_RETURN_IF_ERROR(
      connection.Execute("add_names", insert.str()).status());
  return connection
      .Execute("move_counter", SqlText("UPDATE id_blocks SET next = ")
                                   .Int(next)
                                   .Raw(" WHERE name = ")
                                   .Text(table.counter)
                                   .str())
      .status();
}

absl::Status AddQueues(Connection& connection, absl::Span<const Names> lanes) {
  std::set<std::string> queues;
  for (const Names& lane : lanes) queues.insert(lane.first);
  SqlText sql("INSERT IGNORE INTO queues (name) VALUES ");
  for (const std::string& queue : queues) sql.Row(queue);
  return connection.Execute("add_queues", sql.str()).status();
}

constexpr InternTable kLanes = {"lane", "lanes", "queue", "type", kMaxLanes};
constexpr InternTable kHolders = {"holder", "executors", "executor_id",
                                  "incarnation",
                                  std::numeric_limits<HolderId>::max()};

}  // namespace

absl::StatusOr<int64_t> MySqlTaskStore::NowUs() {
  int64_t now_us = 0;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      control_, "now", on_retry_, [&](Connection& connection) -> absl::Status {
        // Changes nothing, but fails on a server that takes no writes.
        LEASEHOLD_RETURN_IF_ERROR(
            connection
                .Execute("probe_write",
                         "UPDATE id_blocks SET next = next WHERE name = 'task'")
                .status());
        LEASEHOLD_ASSIGN_OR_RETURN(now_us, SelectNowUs(connection));
        return absl::OkStatus();
      }));
  return now_us;
}

absl::StatusOr<TaskId> MySqlTaskStore::ReserveIds(int64_t count) {
  TaskId first = 0;
  LEASEHOLD_RETURN_IF_ERROR(RunStatement(
      control_, "reserve_ids", on_retry_,
      [&](Connection& connection) -> absl::Status {
        LEASEHOLD_ASSIGN_OR_RETURN(
            const int64_t matched,
            connection.Execute(
                "reserve_ids",
                absl::StrCat("UPDATE id_blocks SET next = LAST_INSERT_ID(next) "
                             "+ ",
                             count, " WHERE name = 'task'")));
        first = connection.LastInsertId();
        if (matched != 1 || first <= 0) {
          return absl::InternalError("id_blocks: row is missing");
        }
        return absl::OkStatus();
      }));
  return first;
}

absl::StatusOr<std::vector<LaneId>> MySqlTaskStore::InternLanes(
    absl::Span<const Names> names) {
  std::map<Names, int64_t> found;
  LEASEHOLD_RETURN_IF_ERROR(RunTransaction(
      control_, "intern_lanes", on_retry_,
      [&](Connection& connection) -> absl::Status {
        LEASEHOLD_ASSIGN_OR_RETURN(found,
                                   SelectInterned(connection, kLanes, names));
        const bool all = std::all_of(
            names.begin(), names.end(),
            [&](const Names& name) { return found.contains(name); });
        if (all) return absl::OkStatus();
        LEASEHOLD_RETURN_IF_ERROR(
            AddMissing(connection, kLanes, names, &found));
        return AddQueues(connection, names);
      }));
  std::vector<LaneId> ids;
  for (const Names& name : names) {
    ids.push_back(static_cast<LaneId>(found.at(name)));
  }
  return ids;
}

absl::StatusOr<std::vector<Lane>> MySqlTaskStore::ListLanes() {
  LEASEHOLD_ASSIGN_OR_RETURN(
      Rows rows, Read(Role::kControl, "list_lanes",
                      "SELECT id, queue, type FROM lanes ORDER BY id", "itt"));
  std::vector<Lane> lanes;
  for (size_t i = 0; i < rows.size(); ++i) {
    lanes.push_back({static_cast<LaneId>(rows.Int(i, 0)), rows.TakeText(i, 1),
                     rows.TakeText(i, 2)});
  }
  return lanes;
}

absl::StatusOr<HolderId> MySqlTaskStore::InternHolder(
    const std::string& executor_id, const std::string& incarnation) {
  const std::vector<Names> names = {{executor_id, incarnation}};
  std::map<Names, int64_t> found;
  LEASEHOLD_RETURN_IF_ERROR(
      RunTransaction(control_, "intern_holder", on_retry_,
                     [&](Connection& connection) -> absl::Status {
                       LEASEHOLD_ASSIGN_OR_RETURN(
                           found, SelectInterned(connection, kHolders, names));
                       if (!found.empty()) return absl::OkStatus();
                       return AddMissing(connection, kHolders, names, &found);
                     }));
  return static_cast<HolderId>(found.at(names[0]));
}

absl::StatusOr<std::vector<LeasedTask>> MySqlTaskStore::ReadLeases(
    Role role, const char* name, const std::string& sql) {
  LEASEHOLD_ASSIGN_OR_RETURN(const Rows rows,
                             Read(role, name, sql, "iiiiiiii"));
  std::vector<LeasedTask> leases(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    LeasedTask& lease = leases[i];
    lease.lease = {rows.Int(i, 0), rows.Int(i, 1)};
    lease.lane_id = static_cast<LaneId>(rows.Int(i, 2));
    lease.holder = static_cast<HolderId>(rows.Int(i, 3));
    lease.state = static_cast<TaskState>(rows.Int(i, 4));
    lease.lease_expire_us = rows.Int(i, 5);
    lease.state_us = rows.Int(i, 6);
    lease.cancel_expire_us = rows.Int(i, 7);
  }
  return leases;
}

absl::StatusOr<std::vector<LeasedTask>> MySqlTaskStore::ListLeases(
    HolderId holder) {
  LEASEHOLD_ASSIGN_OR_RETURN(
      std::vector<LeasedTask> leases,
      ReadLeases(Role::kControl, "list_leases", ListLeasesSql(holder)));
  std::sort(leases.begin(), leases.end(),
            [](const LeasedTask& a, const LeasedTask& b) {
              return a.lease < b.lease;
            });
  return leases;
}

}  // namespace leasehold::scheduler
