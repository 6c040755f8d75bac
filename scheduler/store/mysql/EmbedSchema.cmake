# Writes OUTPUT, a C++ source with the text of every NNNN_*.sql file in DIR, in
# the order of their numbers.
#
#   cmake -DDIR=.../schema -DOUTPUT=.../schema_files.cc -P EmbedSchema.cmake
file(GLOB files ${DIR}/[0-9]*.sql)
list(SORT files)
set(entries "")
foreach(path IN LISTS files)
  get_filename_component(name ${path} NAME_WE)
  string(REGEX MATCH "^[0-9]+" number ${name})
  math(EXPR number "${number} + 0" OUTPUT_FORMAT DECIMAL)
  file(READ ${path} text)
  string(APPEND entries "      {${number}, \"${name}\", R\"sql(${text})sql\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"scheduler/store/mysql/schema_files.h\"

namespace leasehold::scheduler {

const std::vector<SchemaFile>& SchemaFiles() {
  static const auto* const kFiles = new std::vector<SchemaFile>{
${entries}  };
  return *kFiles;
}

}  // namespace leasehold::scheduler
")
