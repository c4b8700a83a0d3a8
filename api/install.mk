# install.mk — make install, uninstall and dist (included by the Makefile). Documents: docs/docs.mk.

INSTALL  ?= install
LIBDIR   ?= $(PREFIX)/lib
MANDIR   ?= $(PREFIX)/share/man
INSTALLED = $(PREFIX)/bin/weft $(PREFIX)/include/weft.h $(PREFIX)/include/weft.hpp \
            $(LIBDIR)/libweft.a $(LIBDIR)/$(SO_FILE) $(LIBDIR)/$(SO_NAME) $(LIBDIR)/libweft.so \
            $(LIBDIR)/pkgconfig/weft.pc $(MANDIR)/man1/weft.1
install: all               ## into PREFIX (/usr/local), below DESTDIR: program, headers, libraries, manual, documents
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pkgconfig \
	  $(DESTDIR)$(MANDIR)/man1
	$(INSTALL) -m 755 $(B)/weft $(DESTDIR)$(PREFIX)/bin/weft
	$(INSTALL) -m 644 api/weft.h api/weft.hpp $(DESTDIR)$(PREFIX)/include/
	$(INSTALL) -m 644 $(B)/libweft.a $(DESTDIR)$(LIBDIR)/libweft.a
	$(INSTALL) -m 755 $(B)/$(SO_FILE) $(DESTDIR)$(LIBDIR)/$(SO_FILE)
	ln -sf $(SO_FILE) $(DESTDIR)$(LIBDIR)/$(SO_NAME)
	ln -sf $(SO_NAME) $(DESTDIR)$(LIBDIR)/libweft.so
	sed -e '1d; s|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
	  api/weft.pc.in >$(B)/weft.pc
	$(INSTALL) -m 644 $(B)/weft.pc $(DESTDIR)$(LIBDIR)/pkgconfig/weft.pc
	$(INSTALL) -m 644 docs/weft.1 $(DESTDIR)$(MANDIR)/man1/weft.1

# Takes away what `make install` with the same variables put there, and no folder.
uninstall:                 ## takes away what the same install put there
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))

dist:                      ## build/weft-VERSION.tar.gz: the tree with MIR's source inside; builds without a network
	@.ci/dist
