# Warnings, sanitizers, and instruction-set flags by file name.

set(GN_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Wundef -Wstrict-prototypes
    -Wmissing-prototypes -Wvla)
# Results must not depend on the compiler's liking: no contraction of a*b+c, no fast math.
add_compile_options(${GN_WARNINGS} -ffp-contract=off -fno-math-errno -fno-strict-aliasing)
option(GANGLION_WERROR "warnings are errors" ON)
if(GANGLION_WERROR)
    add_compile_options(-Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    add_compile_options(-g1)
    add_link_options(LINKER:--as-needed)
    add_compile_definitions(_FORTIFY_SOURCE=2)
    add_compile_options(-fstack-protector-strong)
    add_link_options(LINKER:-z,relro,-z,now)
    add_compile_definitions(NDEBUG)
endif()
add_compile_definitions(_GNU_SOURCE)

if(GANGLION_SANITIZE)
    add_compile_options(-fsanitize=${GANGLION_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${GANGLION_SANITIZE})
endif()

# x86_avx2.c, x86_avx512.c, x86_vnni.c, x86_amx.c and arm_neon.c, arm_i8mm.c name the level they are
# written for; the rest is compiled for the baseline of the architecture.
set(GN_FLAGS_x86_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(GN_FLAGS_x86_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mbmi2)
set(GN_FLAGS_x86_vnni ${GN_FLAGS_x86_avx512} -mavx512vnni)
set(GN_FLAGS_x86_amx ${GN_FLAGS_x86_vnni} -mamx-tile -mamx-int8 -mamx-bf16 -mavx512bf16)
set(GN_FLAGS_arm_neon -march=armv8.2-a+dotprod+fp16)
set(GN_FLAGS_arm_i8mm -march=armv8.2-a+dotprod+fp16+i8mm)

function(gn_select_isa_sources list_name)
    set(kept)
    foreach(source IN LISTS ${list_name})
        get_filename_component(name ${source} NAME_WE)
        if(name MATCHES "^x86_" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
            continue()
        endif()
        if(name MATCHES "^arm_" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
            continue()
        endif()
        if(DEFINED GN_FLAGS_${name})
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${GN_FLAGS_${name}}")
        elseif(name MATCHES "^(x86|arm)_")
            message(FATAL_ERROR "${source}: no instruction-set flags known for ${name}")
        endif()
        list(APPEND kept ${source})
    endforeach()
    set(${list_name} ${kept} PARENT_SCOPE)
endfunction()
