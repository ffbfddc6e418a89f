# What `make install` puts where: program, libraries, headers, pkg-config file, man pages, completions.
# The last two come out of the program itself (src/cli/generate.c), so a cross build has none.

install(TARGETS ganglion ganglion_static ganglion_shared
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/ganglion DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")

# The prefix is known only when the files are installed: `cmake --install --prefix` may change it.
install(CODE "
    set(PROJECT_VERSION \"${PROJECT_VERSION}\")
    set(CMAKE_INSTALL_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(CMAKE_INSTALL_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    configure_file(\"${CMAKE_SOURCE_DIR}/cmake/ganglion.pc.in\"
                   \"${CMAKE_BINARY_DIR}/ganglion.pc\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/ganglion.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(NOT CMAKE_CROSSCOMPILING)
    set(GN_COMMANDS run serve pull inspect tokenize embed template logits eval bench grammar plan)
    set(GN_GENERATED ${CMAKE_BINARY_DIR}/man/ganglion.1)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/ganglion.1
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
        COMMAND ganglion generate man > ${CMAKE_BINARY_DIR}/man/ganglion.1
        DEPENDS ganglion VERBATIM)
    foreach(command IN LISTS GN_COMMANDS)
        set(page ${CMAKE_BINARY_DIR}/man/ganglion-${command}.1)
        add_custom_command(OUTPUT ${page}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
            COMMAND ganglion generate man ${command} > ${page}
            DEPENDS ganglion VERBATIM)
        list(APPEND GN_GENERATED ${page})
    endforeach()
    install(FILES ${GN_GENERATED} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    foreach(shell bash zsh fish)
        set(script ${CMAKE_BINARY_DIR}/completion/${shell})
        add_custom_command(OUTPUT ${script}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
            COMMAND ganglion generate completion ${shell} > ${script}
            DEPENDS ganglion VERBATIM)
        list(APPEND GN_GENERATED ${script})
    endforeach()
    install(FILES ${CMAKE_BINARY_DIR}/completion/bash
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ganglion)
    install(FILES ${CMAKE_BINARY_DIR}/completion/zsh
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _ganglion)
    install(FILES ${CMAKE_BINARY_DIR}/completion/fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ganglion.fish)
    add_custom_target(ganglion_generated ALL DEPENDS ${GN_GENERATED})
endif()

# The unit of `systemctl start ganglion@NAME`.
if(NOT CMAKE_CROSSCOMPILING)
    configure_file(cmake/ganglion@.service.in ${CMAKE_BINARY_DIR}/ganglion@.service @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/ganglion@.service
            DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system)
endif()
