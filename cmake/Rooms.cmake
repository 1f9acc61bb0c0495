# The house's levels, lowest first. A room may use every room of a lower level, and none of its own level.
set(MARGRAVE_LEVELS "base" "parallel" "model" "data inference" "state optim" "objective" "solvers" "report")

# margrave_rooms_below(out room): the rooms that `room` may use, and `room` itself; all rooms for any other name.
function(margrave_rooms_below out room)
  set(rooms "")
  foreach(level IN LISTS MARGRAVE_LEVELS)
    separate_arguments(members UNIX_COMMAND "${level}")
    if(room IN_LIST members)
      list(APPEND rooms ${room})
      break()
    endif()
    list(APPEND rooms ${members})
  endforeach()
  set(${out} ${rooms} PARENT_SCOPE)
endfunction()

# margrave_link_rooms(target room): gives `target` the object files of exactly those rooms.
function(margrave_link_rooms target room)
  margrave_rooms_below(rooms ${room})
  foreach(name IN LISTS rooms)
    target_sources(${target} PRIVATE ${MARGRAVE_OBJECTS_${name}})
  endforeach()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/lib)
  target_link_libraries(${target} PRIVATE ${MARGRAVE_LINKED} Eigen3::Eigen nlohmann_json::nlohmann_json)
endfunction()
