/** Express alone. */
import express from "express";
import { answer } from "./answer.mjs";

const app = express();
app.get("/v1/availability", (_, response) => {
  response.json(answer);
});
app.listen(process.env.PORT, "127.0.0.1");
