# docs.mk — `make docs`, and what `make install` does with documents and examples. Included by Makefile.
.PHONY: docs install-docs uninstall-docs

# The function reference first, then the site, which shows it too. Both are programs in Weft; patterns need PCRE2.
docs: all                  ## a site of the guide, the reference and the documents, with a search, in build/site
	$(Q)mkdir -p build/docs
	$(Q)$(B)/weft docs/tools/probe.weft >build/docs/ask.weft
	$(Q)$(B)/weft build/docs/ask.weft >build/docs/dtypes.json
	$(Q)$(B)/weft docs/tools/reference.weft build/docs/reference build/docs/dtypes.json
	$(Q)$(B)/weft docs/tools/site.weft build/site build/docs/reference build/docs/drawings.weft
	$(Q)$(B)/weft build/docs/drawings.weft >/dev/null

# As they lie here, so that links from one to another lead where they should.
DOCDIR   ?= $(PREFIX)/share/doc/weft
DOCUMENTS = LICENSE $(wildcard *.md api/weft.h api/*.md python/*.md rust/*.md docs/*.md docs/*/*.md examples/*.* \
            examples/*/*.*)
install: install-docs
install-docs:
	for f in $(DOCUMENTS); do $(INSTALL) -D -m 644 $$f $(DESTDIR)$(DOCDIR)/$$f || exit 1; done

# The folder is Weft's own, so it goes too when nothing else is in it.
uninstall: uninstall-docs
uninstall-docs:
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,$(DOCUMENTS))
	[ ! -d $(DESTDIR)$(DOCDIR) ] || find $(DESTDIR)$(DOCDIR) -depth -type d -empty -delete
