#include "frontend/text/parser.h"
#include "frontend/text/function_parser.h"
#include "ir/graph/element_text.h"
#include "ir/graph/names.h"
#include "ir/verify/verify.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fusor::frontend {
namespace {

class ModuleParser {
public:
  ModuleParser(llvm::StringRef text, llvm::StringRef fileName) : cursor_(text, fileName) {}

  llvm::Expected<std::unique_ptr<ir::Module>> run() {
    while (!cursor_.at(TokenKind::end) && !cursor_.tooManyErrors()) {
      size_t start = cursor_.position();
      if (declaration()) continue;
      cursor_.skipStatement(start);
      if (cursor_.position() == start) cursor_.next(); // a stray }
    }
    if (!cursor_.hasErrors())
      for (const ir::Problem &problem : ir::findProblems(*module_)) cursor_.error(problem.location, problem.message);
    if (cursor_.hasErrors()) return llvm::make_error<DiagnosticError>(cursor_.takeDiagnostics());
    return std::move(module_);
  }

private:
  bool declaration() {
    if (cursor_.atWord("func")) return FunctionParser(cursor_, types_, *module_).parse();
    Token word = cursor_.peek();
    if (word.is(TokenKind::word)) cursor_.next();
    if (word.isWord("module")) return moduleName() && cursor_.expectStatementEnd();
    if (word.isWord("dim")) return types_.symbolRange() && cursor_.expectStatementEnd();
    for (ir::PersistentKind kind : {ir::PersistentKind::param, ir::PersistentKind::state, ir::PersistentKind::constant,
                                    ir::PersistentKind::derived})
      if (word.isWord(ir::name(kind))) return persistent(kind);
    static const std::vector<std::string> words = {"module", "dim", "param", "state", "const", "derived", "func"};
    auto close = word.is(TokenKind::word) ? nearest(word.text, words) : std::nullopt;
    if (word.is(TokenKind::word)) cursor_.rewind(cursor_.position() - 1);
    auto &error = cursor_.expectedHere("one of " + llvm::join(words, ", "));
    if (close) error.hint = llvm::formatv("did you mean '{0}'?", *close).str();
    return false;
  }

  bool moduleName() {
    Token name = cursor_.peek();
    if (!cursor_.expect(TokenKind::persistent, "the name of the module, as in @minigpt")) return false;
    if (!module_->name().empty()) return cursor_.error(name, "the module already has a name"), false;
    module_->setName(name.name());
    return true;
  }

  // "@name : type ..." behind the kind
  bool persistent(ir::PersistentKind kind) {
    Token name = cursor_.peek();
    if (!cursor_.expect(TokenKind::persistent, "a name, as in @fc1.weight")) return false;
    ir::Persistent persistent{kind, name.name(), {}, {}, nullptr, "", {}, {}, cursor_.location(name)};
    if (const ir::Persistent *earlier = module_->persistent(persistent.name)) {
      auto &error = cursor_.error(name, llvm::formatv("{0} is already declared", name.text).str());
      error.notes.push_back({earlier->location, llvm::formatv("{0} is first declared here", name.text).str()});
      return false;
    }
    if (!cursor_.expect(TokenKind::colon, "':' and a type")) return false;
    auto type = types_.type();
    if (!type) return false;
    persistent.type = std::move(*type);
    bool read = kind == ir::PersistentKind::constant  ? contents(persistent)
                : kind == ir::PersistentKind::derived ? derivation(persistent)
                                                      : initializer(persistent);
    if (!read || !cursor_.expectStatementEnd()) return false;
    module_->addPersistent(std::move(persistent));
    return true;
  }

  // "{init = normal(0.02)}"
  bool initializer(ir::Persistent &persistent) {
    if (!cursor_.accept(TokenKind::leftBrace)) return true;
    if (!cursor_.expectWord("init") || !cursor_.expect(TokenKind::equals, "'='")) return false;
    using Kind = ir::Initializer::Kind;
    if (cursor_.acceptWord("zeros")) return cursor_.expect(TokenKind::rightBrace, "'}'");
    bool normal = cursor_.atWord("normal");
    if (!normal && !cursor_.atWord("constant"))
      return cursor_.expected("zeros, constant(x) or normal(deviation)"), false;
    cursor_.next();
    if (!cursor_.expect(TokenKind::leftParen, "'('")) return false;
    auto value = types_.real("a number");
    if (!value) return false;
    persistent.init = {normal ? Kind::normal : Kind::constant, *value};
    return cursor_.expect(TokenKind::rightParen, "')'") && cursor_.expect(TokenKind::rightBrace, "'}'");
  }

  // "= [1.0, 2.0]" or "= hex "0011...""
  bool contents(ir::Persistent &persistent) {
    if (!cursor_.expect(TokenKind::equals, "'=' and the elements")) return false;
    Token start = cursor_.peek();
    ir::Dim elements = persistent.type.elements();
    if (!elements.isConstant())
      return cursor_.error(start,
                           llvm::formatv("a const has dims that are numbers, not {0}", persistent.type.str()).str()),
             false;
    std::vector<char> data;
    if (!(cursor_.acceptWord("hex") ? hexBytes(data) : listedElements(persistent, data))) return false;
    int64_t expected = elements.value() * ir::byteSize(persistent.type.dtype);
    if (int64_t(data.size()) != expected) {
      cursor_.error(start, llvm::formatv("{0} has {1} elements of {2} bytes, found {3} bytes", persistent.type.str(),
                                         elements.value(), ir::byteSize(persistent.type.dtype), data.size())
                               .str());
      return false;
    }
    persistent.data = std::make_shared<const std::vector<char>>(std::move(data));
    return true;
  }

  bool hexBytes(std::vector<char> &data) {
    Token token = cursor_.peek();
    if (!cursor_.expect(TokenKind::string, "a string of hex digits")) return false;
    std::string digits = token.name(), bytes;
    if (!llvm::tryGetFromHex(digits, bytes) || digits.size() % 2)
      return cursor_.error(token, "expected an even number of hex digits"), false;
    data.assign(bytes.begin(), bytes.end());
    return true;
  }

  bool listedElements(const ir::Persistent &persistent, std::vector<char> &data) {
    if (!cursor_.expect(TokenKind::leftBracket, "'[' and the elements, or hex \"...\"")) return false;
    ir::DType dtype = persistent.type.dtype;
    if (!cursor_.at(TokenKind::rightBracket)) do {
        Token start = cursor_.peek();
        std::string text = cursor_.accept(TokenKind::minus) ? "-" : "";
        Token token = cursor_.peek();
        if (!token.is(TokenKind::integer) && !token.is(TokenKind::real) && !token.is(TokenKind::word))
          return cursor_.expected("a number"), false;
        text += cursor_.next().text.str();
        int64_t index = data.size() / ir::byteSize(dtype);
        data.resize(data.size() + ir::byteSize(dtype));
        if (!ir::storeElementText(dtype, data.data(), index, text))
          return cursor_.error(start, llvm::formatv("'{0}' is no value of {1}", text, ir::name(dtype)).str()), false;
      } while (cursor_.accept(TokenKind::comma));
    return cursor_.expect(TokenKind::rightBracket, "',' or ']' after an element");
  }

  // "= cast @w {to = bf16}"
  bool derivation(ir::Persistent &persistent) {
    if (!cursor_.expect(TokenKind::equals, "'=' and an op")) return false;
    Token op = cursor_.peek();
    if (!cursor_.expect(TokenKind::word, "an op")) return false;
    const ir::OpDef *def = ir::findOp(op.text);
    if (!def) {
      std::vector<std::string> known;
      for (const ir::OpDef *d : ir::allOps()) known.push_back(d->name);
      auto &error = cursor_.error(op, llvm::formatv("there is no op called '{0}'", op.text).str());
      if (auto close = nearest(op.text, known)) error.hint = llvm::formatv("did you mean '{0}'?", *close).str();
      return false;
    }
    persistent.deriveOp = def->name;
    if (!cursor_.atStatementEnd() && !cursor_.at(TokenKind::leftBrace)) do {
        Token source = cursor_.peek();
        if (!cursor_.expect(TokenKind::persistent, "a persistent value, as in @w")) return false;
        persistent.deriveFrom.push_back(source.name());
      } while (cursor_.accept(TokenKind::comma));
    auto attrs = parseAttrs(cursor_, types_, *def);
    if (!attrs) return false;
    persistent.deriveAttrs = std::move(attrs->attrs);
    for (const ir::AttrSpec &spec : def->attrs) // defaults are not stored
      if (const ir::AttrValue *value = persistent.deriveAttrs.find(spec.name);
          value && spec.defaultValue && *value == *spec.defaultValue)
        persistent.deriveAttrs.erase(spec.name);
    return true;
  }

  Cursor cursor_;
  std::unique_ptr<ir::Module> module_ = std::make_unique<ir::Module>();
  TypeParser types_{cursor_, *module_};
};

} // namespace

llvm::Expected<std::unique_ptr<ir::Module>> parseModule(llvm::StringRef text, llvm::StringRef fileName) {
  return ModuleParser(text, fileName).run();
}

} // namespace fusor::frontend
