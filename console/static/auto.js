// A filter form is sent as soon as something else is chosen; typing waits for Enter.
document.addEventListener("change", (event) => {
  if (event.target.matches("select, input[type=checkbox]") && event.target.form?.matches("[data-auto]")) event.target.form.requestSubmit();
});
